//! Following the log: in order, without gaps, across every restart of the server.

mod begin;
mod past;
mod source;

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use self::past::Past;
use self::source::{Delivered, Fault, Opened, Source, open};
use crate::batch::{Batch, Item};
use crate::deleted::Deleted;
use crate::mark::Mark;
use crate::shared::SharedStream;
use crate::streams::LogStream;
use crate::way::Way;
use crate::{ReadError, TailError, envelope};

/// How long a copy that should deliver something may deliver nothing before its leader is asked
/// whether there is more.
const LAG: Duration = Duration::from_millis(200);
/// How long it may deliver nothing although there is more, before another one is tried: it may have
/// lost touch with the leader for good.
const STALLED: Duration = Duration::from_secs(5);
const BACKOFF: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(1);

/// A reader that follows the log.
pub struct Tail {
    way: Way,
    stream: LogStream,
    /// Where taken events are reported.
    shared: Arc<SharedStream>,
    filters: Vec<String>,
    /// Past events to take before anything is asked of the server here.
    past: Option<Past>,
    /// The last event taken.
    last: Mark,
    /// Events that wait after it in the log, according to the copy that is read from.
    pending: u64,
    /// Where the leader's stream ended when that copy was chosen.
    end: u64,
    /// Whether everything up to there is taken. Before that, the copy's report that nothing waits
    /// does not count.
    is_sure: bool,
    source: Option<Source>,
    /// The source being opened: kept across cancelled waits, so that a slow server is not asked
    /// again each time.
    opening: Option<Opening>,
    /// The query for what was deleted, kept in the same way while the gap ahead is the same.
    asking: Option<Asking>,
    /// The query whether the leader has more, kept in the same way.
    looking: Option<Looking>,
    /// When the source, or its leader, was last heard from.
    heard: Instant,
    /// Since when it is known that the source lacks something.
    lacking: Option<Instant>,
    /// Messages from the server that have not been taken yet.
    ready: VecDeque<Delivered>,
    deleted: Deleted,
    backoff: Duration,
}

type Opening = AbortOnDropHandle<Result<Opened, Fault>>;
type Asking = AbortOnDropHandle<Result<Deleted, String>>;
type Looking = AbortOnDropHandle<Result<Look, ReadError>>;

/// The result of a look at the leader.
struct Look {
    /// The end of its stream.
    end: u64,
    /// Whether it has nothing up to there.
    has_none: bool,
}

/// The result of waiting.
enum Received {
    /// Messages, or better knowledge of what there is.
    Some,
    /// The log has no more events.
    End,
}

impl Tail {
    /// Waits for an event, then takes what is ready, up to `max` events; none of them if the log
    /// turns out to have no more meanwhile.
    ///
    /// Recovers from faults of the server and the connection. Cancelling the wait loses nothing.
    ///
    /// # Errors
    /// If events are missing that nobody deleted, or those that were read are no longer there:
    /// continuing would hide a loss.
    pub async fn next(&mut self, max: usize) -> Result<Batch, TailError> {
        let max = max.max(1);
        if let Some(past) = &mut self.past {
            if let Some(batch) = past.next(max).await? {
                self.last = batch.mark();
                // It is not known yet whether anything came since it began.
                self.pending = past.pending().max(1);
                return Ok(batch);
            }
            self.last = Mark::at(past.end);
            self.past = None;
        }
        loop {
            let step = match self.pass_gap().await {
                Ok(()) => match self.take(max) {
                    Some(batch) => return Ok(batch),
                    None => self.receive(max).await,
                },
                Err(fault) => Err(fault),
            };
            match step {
                Ok(Received::Some) => self.backoff = BACKOFF,
                Ok(Received::End) => {
                    self.pending = 0;
                    return Ok(Batch::end(self.last));
                }
                Err(Fault::Log(error)) => {
                    // Read again from the server next time, in case it recovers.
                    self.forget_source();
                    return Err(error);
                }
                Err(Fault::Server(reason)) => self.lost(&reason).await,
            }
        }
    }

    /// The sequence of the last event taken.
    pub fn last_sequence(&self) -> u64 {
        self.last.sequence
    }

    /// Whether the log had no more when it was last heard from, and its leader none at some time
    /// since this tail began; true at once for a log without matching events.
    pub fn caught_up(&self) -> bool {
        self.pending == 0
    }

    /// How many events waited after the last one taken, when the server sent it; at least one while
    /// it is not certain that there are none.
    pub fn pending(&self) -> u64 {
        self.pending
    }

    /// Waits for messages and moves them to `ready`. There is no other wait between receiving a
    /// message and adding it to `ready`, so a cancelled wait loses none.
    async fn receive(&mut self, max: usize) -> Result<Received, Fault> {
        if self.source.is_none() {
            let was_behind = !self.caught_up();
            self.open().await?;
            if was_behind && self.caught_up() {
                return Ok(Received::End);
            }
        }
        let ended = || Fault::Server("the server ended it".to_owned());
        let may_wait = self.is_sure && self.caught_up();
        let source = self.source.as_mut().ok_or_else(ended)?;
        let next = source.messages.next();
        let first = if may_wait && !self.stream.replicated {
            next.await
        } else {
            let timeout = if may_wait {
                self.way.silence_timeout
            } else {
                LAG
            };
            match timeout_at(self.heard + timeout, next).await {
                Ok(first) => first,
                Err(_) => return self.miss(may_wait).await,
            }
        };
        self.heard = Instant::now();
        (self.lacking, self.looking) = (None, None);
        self.ready
            .push_back(source.check(first.map_err(Fault::Server)?)?);
        while self.ready.len() < max {
            match source.messages.ready() {
                Some(next) => self
                    .ready
                    .push_back(source.check(next.map_err(Fault::Server)?)?),
                None => break,
            }
        }
        match self.ready.back() {
            Some(last) if !self.is_sure && last.pending == 0 => {
                let reader = self.way.reader(&self.stream);
                let left = reader.has_none_between(&self.filters, last.sequence, self.end);
                self.is_sure = left.await?;
            }
            _ => {}
        }
        Ok(Received::Some)
    }

    /// Finds out whether the log has more than has arrived. Events that the server reported as
    /// waiting may have been erased since. A copy that reported that nothing waits (`all_came`) may
    /// not have received more.
    async fn miss(&mut self, all_came: bool) -> Result<Received, Fault> {
        let (reader, filters) = (self.way.reader(&self.stream), &self.filters);
        let (after, end) = (self.last.sequence, (!self.is_sure).then_some(self.end));
        let looking = self.looking.get_or_insert_with(|| {
            let filters = filters.clone();
            let look = async move {
                let end = match end {
                    Some(end) => end,
                    None => reader.state().await?.last_sequence,
                };
                let has_none = reader.has_none_between(&filters, after, end).await?;
                Ok(Look { end, has_none })
            };
            AbortOnDropHandle::new(tokio::spawn(look))
        });
        let look = looking.await;
        self.looking = None;
        let look = look.map_err(|error| Fault::Server(error.to_string()))??;
        self.heard = Instant::now();
        (self.end, self.is_sure) = (look.end, look.has_none);
        if look.has_none {
            self.lacking = None;
            return Ok(if all_came {
                Received::Some
            } else {
                Received::End
            });
        }
        self.pending = self.pending.max(1);
        let lacking = *self.lacking.get_or_insert(self.heard);
        if lacking.elapsed() > STALLED {
            let stalled = "its copy of the stream brings nothing";
            return Err(Fault::Server(stalled.to_owned()));
        }
        Ok(Received::Some)
    }

    /// Takes what is ready up to a gap, which [`Tail::pass_gap`] checks first.
    fn take(&mut self, max: usize) -> Option<Batch> {
        let mut items = Vec::with_capacity(self.ready.len().min(max));
        let (mut taken, mut bytes) = (0, 0);
        while taken < max && !self.gap_ahead() {
            let Some(delivered) = self.ready.pop_front() else {
                break;
            };
            taken += 1;
            bytes += delivered.message.length;
            let item = item(&delivered);
            self.last = Mark {
                sequence: delivered.sequence,
                event: item.id(),
            };
            self.pending = delivered.pending.max(u64::from(!self.is_sure));
            items.push(item);
        }
        self.shared.took(self.last);
        (taken > 0).then(|| Batch {
            items,
            caught_up: self.caught_up(),
            last_sequence: self.last.sequence,
            last_event: self.last.event,
            bytes,
        })
    }

    /// A filter leaves gaps by nature; without one, sequences are consecutive.
    fn gap_ahead(&self) -> bool {
        let next = self.ready.front().map(|delivered| delivered.sequence);
        self.filters.is_empty()
            && next.is_some_and(|sequence| sequence > self.last.sequence.saturating_add(1))
    }

    /// Passes a gap that the server accounts for.
    async fn pass_gap(&mut self) -> Result<(), Fault> {
        if !self.gap_ahead() {
            return Ok(());
        }
        let (from, next) = (self.last.sequence + 1, self.ready[0].sequence);
        if !self.deleted.explain(from, next) {
            self.deleted = self.ask().await.map_err(Fault::Server)?;
        }
        let to = next - 1;
        if self.deleted.explain(from, next) {
            self.last = Mark::at(to);
            return Ok(());
        }
        Err(Fault::Log(TailError::Hole { from, to }))
    }

    /// Asks the server what was deleted.
    async fn ask(&mut self) -> Result<Deleted, String> {
        let (client, stream) = (&self.way.client, &self.stream);
        let asking = self.asking.get_or_insert_with(|| {
            let (client, stream) = (client.clone(), stream.clone());
            let asking = tokio::spawn(async move { Deleted::ask(&client, &stream).await });
            AbortOnDropHandle::new(asking)
        });
        let asked = asking.await;
        self.asking = None;
        asked.map_err(|error| error.to_string())?
    }

    async fn lost(&mut self, reason: &str) {
        self.forget_source();
        tracing::debug!(
            stream = self.stream.name,
            reason,
            "Lost the log's consumer; creating a new one"
        );
        tokio::time::sleep(self.backoff).await;
        self.backoff = (self.backoff * 2).min(BACKOFF_MAX);
    }

    /// What is ready but not taken is delivered again by a new source.
    fn forget_source(&mut self) {
        self.source = None;
        self.asking = None;
        self.looking = None;
        self.ready.clear();
    }

    /// Waits for a source if there is none.
    async fn open(&mut self) -> Result<(), Fault> {
        if self.opening.is_none() {
            let opening = tokio::spawn(self.opening());
            self.opening = Some(AbortOnDropHandle::new(opening));
        }
        let opened = match &mut self.opening {
            Some(opening) => opening.await,
            None => return Ok(()),
        };
        self.opening = None;
        self.opened(opened.map_err(|error| Fault::Server(error.to_string()))??);
        Ok(())
    }

    fn opening(&self) -> impl Future<Output = Result<Opened, Fault>> + Send + use<> {
        let (way, stream) = (self.way.clone(), self.stream.clone());
        open(way, stream, self.filters.clone(), self.last)
    }

    fn opened(&mut self, opened: Opened) {
        self.source = Some(opened.source);
        self.heard = Instant::now();
        self.lacking = None;
        self.end = opened.end;
        self.is_sure = opened.is_sure;
        self.pending = opened.pending.max(u64::from(!opened.is_sure));
    }
}

fn item(delivered: &Delivered) -> Item {
    let (message, sequence) = (&delivered.message, delivered.sequence);
    let none = async_nats::HeaderMap::new();
    let headers = message.headers.as_ref().unwrap_or(&none);
    match envelope::decode(&message.subject, sequence, headers, &message.payload) {
        Ok(event) => Item::Event(Arc::new(event)),
        Err(reason) => Item::Undecodable {
            sequence,
            subject: message.subject.to_string(),
            reason,
        },
    }
}
