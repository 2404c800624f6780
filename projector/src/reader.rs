//! Reads ahead: the next batch is fetched and decoded while the previous one is written.

use std::sync::Arc;
use std::time::Duration;

use event_log::{Batch, EventLog, Follower, ReadError, TailError};
use schemas::{AggregateType, Log};
use tokio::sync::{Notify, mpsc};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

/// Events decoded at a time: few enough that the first reach the writer soon.
const CHUNK: usize = 1_000;
/// A batch of large events ends at this size, whatever their number.
const BATCH_BYTES: usize = 16 * 1024 * 1024;
/// And one of few wanted events after this many times the wanted number, so that the caller learns
/// how far the log was read.
const SPARSE: u64 = 10;
/// How long a batch waits to become full, if the events that were to follow are erased or late.
const LINGER: Duration = Duration::from_millis(100);

/// A reader of one log, with a task that reads ahead.
pub(crate) struct Reader {
    batches: mpsc::Receiver<Result<Batch, TailError>>,
    /// Notifies the task that the writer is ready for a batch.
    ready: Arc<Notify>,
    /// Whether it was notified and no batch has arrived since.
    asked: bool,
    /// Whether the log had nothing to read when this was opened.
    pub(crate) began_at_end: bool,
    _task: AbortOnDropHandle<()>,
}

impl Reader {
    /// Reads on after the sequence `after`, up to `max` events at a time; only events of the
    /// aggregate types in `only`, if it names any.
    pub(crate) async fn open(
        log: &EventLog,
        feed: Log,
        after: u64,
        max: usize,
        only: &[AggregateType],
    ) -> Result<Self, ReadError> {
        let tail = log.follow(feed, after, only).await?;
        let began_at_end = tail.caught_up();
        let (sender, batches) = mpsc::channel(1);
        let ready = Arc::new(Notify::new());
        let ahead = Ahead {
            tail,
            ready: ready.clone(),
            max: max.max(1),
            read: None,
            sent: after,
            lingered: false,
        };
        Ok(Self {
            batches,
            ready,
            asked: false,
            began_at_end,
            _task: AbortOnDropHandle::new(tokio::spawn(ahead.run(sender))),
        })
    }

    /// Waits for an event, then returns what is available: a single event is passed on at once, and
    /// under load the batches grow. Cancelling loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Batch, ReaderError> {
        if !self.asked {
            self.asked = true;
            self.ready.notify_one();
        }
        let next = self.batches.recv().await.ok_or(ReaderError::Ended)?;
        self.asked = false;
        Ok(next?)
    }
}

/// What was read and not yet taken by the writer. It grows until the writer has time.
struct Ahead {
    tail: Follower,
    ready: Arc<Notify>,
    max: usize,
    read: Option<Batch>,
    /// The last sequence passed to the writer.
    sent: u64,
    /// Whether it has waited long enough for more.
    lingered: bool,
}

impl Ahead {
    async fn run(mut self, sender: mpsc::Sender<Result<Batch, TailError>>) {
        loop {
            let (room, is_due) = (self.room(), self.is_due());
            tokio::select! {
                () = self.ready.notified(), if is_due => {
                    if let Some(batch) = self.read.take() {
                        self.sent = batch.last_sequence;
                        self.lingered = false;
                        if sender.send(Ok(batch)).await.is_err() {
                            return;
                        }
                    }
                }
                next = self.tail.next(room.min(CHUNK)), if room > 0 => match next {
                    Ok(next) => match &mut self.read {
                        Some(batch) => batch.append(next),
                        None => self.read = Some(next),
                    },
                    Err(fault) => {
                        // What was read before the fault is still good.
                        if let Some(batch) = self.read.take() {
                            sender.send(Ok(batch)).await.ok();
                        }
                        sender.send(Err(fault)).await.ok();
                        return;
                    }
                },
                () = sleep(LINGER), if self.read.is_some() && !is_due => self.lingered = true,
            }
        }
    }

    /// How many more events the batch can take.
    fn room(&self) -> usize {
        let Some(batch) = &self.read else {
            return self.max;
        };
        let sparse = self.max as u64 * SPARSE;
        if batch.bytes >= BATCH_BYTES || batch.last_sequence - self.sent >= sparse {
            return 0;
        }
        self.max - batch.items.len()
    }

    /// Whether the writer may have the batch. Many small batches help no one while thousands of
    /// events wait.
    fn is_due(&self) -> bool {
        let is_behind = self.tail.pending() >= self.max as u64;
        self.read.is_some() && (!is_behind || self.lingered || self.room() == 0)
    }
}

/// Why no batch arrived.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReaderError {
    /// The log cannot be followed.
    #[error(transparent)]
    Tail(#[from] TailError),
    /// The task that reads ahead has ended without saying why.
    #[error("reading ahead has ended")]
    Ended,
}
