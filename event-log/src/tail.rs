//! Following the log: in order, without gaps, over every restart of the server.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer, pull};
use futures::FutureExt as _;
use schemas::{AggregateType, Log};
use tokio_util::task::AbortOnDropHandle;

use crate::batch::{Batch, Item};
use crate::deleted::Deleted;
use crate::pull::{Messages, Pull};
use crate::streams::LogStream;
use crate::way::{Way, Whose};
use crate::{EventLog, ReadError, TailError, connection, envelope};

/// The server speaks at least this often; silence means that the consumer is lost.
const HEARTBEAT: Duration = Duration::from_secs(1);
const EXPIRES: Duration = Duration::from_secs(20);
/// A consumer that nobody reads is dropped by the server after this time.
const ABANDONED: Duration = Duration::from_mins(1);
const BACKOFF: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(1);

/// A reader that follows the log.
pub struct Tail {
    way: Way,
    stream: LogStream,
    filters: Vec<String>,
    /// The sequence of the last event taken.
    last: u64,
    /// Events that wait behind it in the log.
    pending: u64,
    source: Option<Source>,
    /// The source on its way: kept over cancelled waits, so that a slow server is not asked anew
    /// each time.
    opening: Option<Opening>,
    /// What came from the server and has not been taken yet.
    ready: VecDeque<Delivered>,
    deleted: Deleted,
    backoff: Duration,
}

type Opening = AbortOnDropHandle<Result<(Source, u64), String>>;

/// The server's side of a tail, made anew after every fault.
struct Source {
    messages: Messages,
    /// The consumer's own count, which has no gap even where the filter leaves events out.
    delivered: u64,
}

/// A gap that cannot be passed.
enum Gap {
    /// The server does not account for it.
    Hole(TailError),
    /// The server does not answer.
    Unknown(String),
}

/// One message, with what the server says around it.
struct Delivered {
    message: Message,
    sequence: u64,
    /// Events that wait behind it.
    pending: u64,
}

impl EventLog {
    /// Follows a stream of the log from behind the sequence `after` (0: from the first event);
    /// only the events of some kinds of aggregate where `only` names any.
    pub async fn tail(
        &self,
        log: Log,
        after: u64,
        only: &[AggregateType],
    ) -> Result<Tail, ReadError> {
        let filters = only.iter().map(|kind| self.subjects().of_kind(*kind));
        self.tail_on(log, after, filters.collect()).await
    }

    /// A tail of a whole stream that asks the server only once something is waited for.
    pub(crate) fn tail_later(&self, log: Log, after: u64) -> Tail {
        let way = Way::of_this_program(self);
        Tail::behind(way, self.streams().get(log).clone(), Vec::new(), after)
    }

    /// Follows a stream of the log for somebody outside, from behind `after`: over the connection
    /// of such readers, and little ahead of what is taken.
    pub async fn read_for(
        &self,
        log: Log,
        whose: Whose<'_>,
        after: u64,
    ) -> Result<Tail, ReadError> {
        let subjects = self.subjects();
        let filters = match whose {
            Whose::All => Vec::new(),
            Whose::Kind(kind) => vec![subjects.of_kind(kind)],
            Whose::Organization(org) => vec![subjects.of_organization(log, org, None)],
            Whose::Aggregates(some) => {
                let some = some.iter();
                some.map(|one| subjects.of(one).to_string()).collect()
            }
        };
        self.tail_by(Way::of_readers(self), log, after, filters)
            .await
    }

    async fn tail_on(&self, log: Log, after: u64, filters: Vec<String>) -> Result<Tail, ReadError> {
        self.tail_by(Way::of_this_program(self), log, after, filters)
            .await
    }

    async fn tail_by(
        &self,
        way: Way,
        log: Log,
        after: u64,
        filters: Vec<String>,
    ) -> Result<Tail, ReadError> {
        let mut tail = Tail::behind(way, self.streams().get(log).clone(), filters, after);
        let opening = open(
            tail.way.clone(),
            tail.stream.clone(),
            tail.filters.clone(),
            after,
        );
        let opened = opening.boxed().await;
        let (source, pending) = opened.map_err(ReadError::Unavailable)?;
        (tail.source, tail.pending) = (Some(source), pending);
        Ok(tail)
    }
}

impl Tail {
    /// What waits behind `after` is not known yet; it is taken for something.
    fn behind(way: Way, stream: LogStream, filters: Vec<String>, after: u64) -> Self {
        Self {
            way,
            stream,
            filters,
            last: after,
            pending: 1,
            source: None,
            opening: None,
            ready: VecDeque::new(),
            deleted: Deleted::default(),
            backoff: BACKOFF,
        }
    }

    /// Waits for an event, then takes what is ready, up to `max` events.
    ///
    /// Faults of the server and the connection are healed within. Cancelling the wait loses
    /// nothing.
    ///
    /// # Errors
    /// Where events are missing that nobody deleted: going on would hide a loss.
    pub async fn next(&mut self, max: usize) -> Result<Batch, TailError> {
        let max = max.max(1);
        loop {
            let step = match self.pass_gap().await {
                Ok(()) => match self.take(max) {
                    Some(batch) => return Ok(batch),
                    None => self.receive(max).await,
                },
                Err(Gap::Hole(hole)) => return Err(hole),
                Err(Gap::Unknown(reason)) => Err(reason),
            };
            match step {
                Ok(()) => self.backoff = BACKOFF,
                Err(reason) => self.lost(&reason).await,
            }
        }
    }

    /// The sequence of the last event taken.
    pub fn last_sequence(&self) -> u64 {
        self.last
    }

    /// Whether nothing more stood in the log when the server was last heard of; true at once for
    /// a log without matching events.
    pub fn caught_up(&self) -> bool {
        self.pending == 0
    }

    /// How many events waited behind the last one taken, when the server sent that.
    pub fn pending(&self) -> u64 {
        self.pending
    }

    /// Waits for messages and moves them to `ready`. There is no other wait between the server's
    /// message and its place in `ready`, so a cancelled wait loses none.
    async fn receive(&mut self, max: usize) -> Result<(), String> {
        if self.source.is_none() {
            self.open().await?;
        }
        let ended = || "the server ended it".to_owned();
        let source = self.source.as_mut().ok_or_else(ended)?;
        let first = source.messages.next().await?;
        self.ready.push_back(source.check(first)?);
        while self.ready.len() < max {
            match source.messages.ready() {
                Some(next) => self.ready.push_back(source.check(next?)?),
                None => break,
            }
        }
        Ok(())
    }

    /// Takes what is ready up to a gap, which [`Tail::pass_gap`] judges first.
    fn take(&mut self, max: usize) -> Option<Batch> {
        let mut items = Vec::with_capacity(self.ready.len().min(max));
        let (mut taken, mut bytes) = (0, 0);
        while taken < max && !self.gap_ahead() {
            let Some(delivered) = self.ready.pop_front() else {
                break;
            };
            taken += 1;
            self.last = delivered.sequence;
            self.pending = delivered.pending;
            bytes += delivered.message.length;
            items.push(item(&delivered));
        }
        let (caught_up, last_sequence) = (self.pending == 0, self.last);
        (taken > 0).then_some(Batch {
            items,
            caught_up,
            last_sequence,
            bytes,
        })
    }

    /// A filter leaves gaps by its nature; without one, sequences follow each other.
    fn gap_ahead(&self) -> bool {
        let next = self.ready.front().map(|delivered| delivered.sequence);
        self.filters.is_empty()
            && next.is_some_and(|sequence| sequence > self.last.saturating_add(1))
    }

    /// Passes a gap that the server accounts for.
    async fn pass_gap(&mut self) -> Result<(), Gap> {
        if !self.gap_ahead() {
            return Ok(());
        }
        let (from, next) = (self.last + 1, self.ready[0].sequence);
        if !self.deleted.explain(from, next) {
            let asked = Deleted::ask(&self.way.client, &self.stream).await;
            self.deleted = asked.map_err(Gap::Unknown)?;
        }
        if self.deleted.explain(from, next) {
            self.last = next - 1;
            return Ok(());
        }
        // Read again from the server next time, in case that it heals.
        self.forget_source();
        let to = next - 1;
        Err(Gap::Hole(TailError::Hole { from, to }))
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

    /// What is ready but not taken comes again from a new source.
    fn forget_source(&mut self) {
        self.source = None;
        self.ready.clear();
    }

    /// Waits for a source where there is none.
    async fn open(&mut self) -> Result<(), String> {
        let make = || {
            let (way, stream) = (self.way.clone(), self.stream.clone());
            let opening = open(way, stream, self.filters.clone(), self.last);
            AbortOnDropHandle::new(tokio::spawn(opening))
        };
        let opened = self.opening.get_or_insert_with(make).await;
        self.opening = None;
        let (source, pending) = opened.map_err(|error| error.to_string())??;
        (self.source, self.pending) = (Some(source), pending);
        Ok(())
    }
}

/// Makes a consumer of what stands behind `last`; says how many events that is.
async fn open(
    way: Way,
    stream: LogStream,
    filter_subjects: Vec<String>,
    last: u64,
) -> Result<(Source, u64), String> {
    connection::check(&way.client)?;
    let config = pull::Config {
        deliver_policy: DeliverPolicy::ByStartSequence {
            start_sequence: last.saturating_add(1),
        },
        ack_policy: AckPolicy::None,
        filter_subjects,
        inactive_threshold: ABANDONED,
        max_deliver: 1,
        memory_storage: true,
        num_replicas: 1,
        ..pull::Config::default()
    };
    let consumer: PullConsumer = way
        .context
        .create_consumer_on_stream(config, &stream.name)
        .await
        .map_err(|e| e.to_string())?;
    let pending = consumer.cached_info().num_pending;
    let messages = if way.asks_ahead {
        let messages = consumer
            .stream()
            .max_messages_per_batch(way.messages)
            .max_bytes_per_batch(way.bytes)
            .heartbeat(HEARTBEAT)
            .expires(EXPIRES)
            .messages();
        Messages::Ahead(messages.await.map_err(|e| e.to_string())?)
    } else {
        let name = &consumer.cached_info().name;
        Messages::Asked(Pull::of(&way, &stream.name, name).await?)
    };
    let source = Source {
        messages,
        delivered: 0,
    };
    Ok((source, pending))
}

impl Source {
    fn check(&mut self, message: Message) -> Result<Delivered, String> {
        let info = message.info().map_err(|error| error.to_string())?;
        if info.consumer_sequence != self.delivered + 1 {
            return Err(format!(
                "message {} was lost on the way",
                self.delivered + 1
            ));
        }
        self.delivered += 1;
        let (sequence, pending) = (info.stream_sequence, info.pending);
        self.messages.are_behind(pending > 0);
        Ok(Delivered {
            message,
            sequence,
            pending,
        })
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
