//! Reads ahead: the next batch is fetched and decoded while the one before is written.

use event_log::{Batch, EventLog, Item, ReadError, TailError};
use schemas::{AggregateType, Log};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

/// Events decoded at a time: small enough that the first are soon with the writer.
const CHUNK: usize = 1_000;
/// Chunks that wait for the writer at most.
const AHEAD: usize = 8;

/// A reader of one log, behind whom a task reads ahead.
pub(crate) struct Reader {
    chunk: usize,
    max: usize,
    chunks: mpsc::Receiver<Result<Batch, TailError>>,
    /// Whether nothing stood in the log to be read when this was opened.
    pub(crate) began_at_end: bool,
    /// A fault that came behind events which were still good.
    fault: Option<TailError>,
    _task: AbortOnDropHandle<()>,
}

impl Reader {
    /// Reads on behind the sequence `after`, up to `max` events at a time; those of some kinds of
    /// aggregate where `only` names any.
    pub(crate) async fn open(
        log: &EventLog,
        feed: Log,
        after: u64,
        max: usize,
        only: &[AggregateType],
    ) -> Result<Self, ReadError> {
        let chunk = max.clamp(1, CHUNK);
        let mut tail = log.tail_through(feed, after, only).await?;
        let began_at_end = tail.caught_up();
        let (sender, chunks) = mpsc::channel(AHEAD);
        let task = tokio::spawn(async move {
            loop {
                let chunk = tail.next(chunk).await;
                let ended = chunk.is_err();
                if sender.send(chunk).await.is_err() || ended {
                    return;
                }
            }
        });
        Ok(Self {
            chunk,
            max,
            chunks,
            began_at_end,
            fault: None,
            _task: AbortOnDropHandle::new(task),
        })
    }

    /// Waits for an event, then gives what is there: one event goes on alone at once, and under
    /// load the batches grow by themselves. Cancelling loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Batch, ReaderError> {
        if let Some(fault) = self.fault.take() {
            return Err(fault.into());
        }
        let mut batch = self.chunks.recv().await.ok_or(ReaderError::Ended)??;
        while batch.items.len() + self.chunk <= self.max {
            match self.chunks.try_recv() {
                Ok(Ok(chunk)) => {
                    batch.items.extend(chunk.items);
                    batch.last_sequence = chunk.last_sequence;
                    batch.caught_up = chunk.caught_up;
                }
                Ok(Err(fault)) => {
                    self.fault = Some(fault);
                    break;
                }
                Err(_) => break,
            }
        }
        Ok(batch)
    }
}

/// Why no batch came.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReaderError {
    /// The log cannot be followed.
    #[error(transparent)]
    Tail(#[from] TailError),
    /// The task that reads ahead has ended without saying why.
    #[error("reading ahead has ended")]
    Ended,
}

/// Where an item stands in the log.
pub(crate) fn sequence(item: &Item) -> u64 {
    match item {
        Item::Event(event) => event.sequence,
        Item::Undecodable { sequence, .. } => *sequence,
    }
}
