//! Ways to the log: this program's own, and that of outside readers.

use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream;
use schemas::{AggregateType, OrgId, StreamId};

use crate::EventLog;
use crate::answer_times::AnswerTimes;
use crate::read::{ReadTimeout, StreamReader};
use crate::streams::LogStream;
use crate::throttle::Throttle;

/// The events that an outside reader follows.
#[derive(Clone, Copy, Debug)]
pub enum Whose<'a> {
    /// All events.
    All,
    /// Events of one kind of aggregate.
    Kind(AggregateType),
    /// An organization's events, or those of one kind of its aggregates.
    Organization(&'a OrgId, Option<AggregateType>),
    /// Events of some aggregates, at least one.
    Aggregates(&'a [StreamId]),
}

/// The connection that events come over, and how many are requested ahead of their use.
#[derive(Clone)]
pub(crate) struct Way {
    pub(crate) client: Client,
    pub(crate) context: jetstream::Context,
    pub(crate) throttle: Throttle,
    /// How long it took to open tails.
    pub(crate) times: AnswerTimes,
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
    /// Whether more is requested before all of it is used.
    pub(crate) asks_ahead: bool,
    /// How long silence is taken to mean that nothing comes, if there are copies that may have
    /// received nothing.
    pub(crate) silence_timeout: Duration,
}

impl Way {
    /// For this program's own followers, which always take what comes and are only a few.
    pub(crate) fn of_this_program(log: &EventLog) -> Self {
        let client = log.followers().client();
        Self {
            times: log.answers_to_followers().clone(),
            context: log.followers().clone(),
            throttle: log.throttle().clone(),
            messages: 4_096,
            bytes: (8 * 1024 * 1024).max(2 * client.max_payload()),
            asks_ahead: true,
            silence_timeout: Duration::from_secs(10),
            client,
        }
    }

    /// For outside readers, who may be many and may take nothing. The bytes have room for the
    /// largest event; without it the server would never send one.
    pub(crate) fn of_readers(log: &EventLog) -> Self {
        let client = log.readers().client();
        Self {
            times: log.answers_to_readers().clone(),
            context: jetstream::new(client.clone()),
            throttle: log.throttle().clone(),
            messages: 128,
            bytes: client.max_payload() + 64 * 1024,
            asks_ahead: false,
            silence_timeout: Duration::from_secs(30),
            client,
        }
    }
}

impl Way {
    /// The longest time between the server's signs that a consumer exists; two such silences mean
    /// that it is lost. A sign comes after everything else in transit.
    pub(crate) fn heartbeat(&self) -> Duration {
        self.times.timeout() / 2
    }

    /// A reader of the same stream over this connection. Much else on it may come first.
    pub(crate) fn reader(&self, stream: &LogStream) -> StreamReader {
        let timeout = ReadTimeout::of(self.times.timeout());
        StreamReader::new(&self.context, stream).with(timeout)
    }
}
