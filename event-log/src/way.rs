//! Ways to the log: this program's own, and that of readers outside.

use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream;
use schemas::{AggregateType, OrgId, StreamId};

use crate::EventLog;
use crate::answer_times::AnswerTimes;
use crate::pace::Pace;
use crate::read::{Patience, StreamReader};
use crate::streams::LogStream;

/// Whose events are read for somebody outside.
#[derive(Clone, Copy, Debug)]
pub enum Whose<'a> {
    /// Everybody's.
    All,
    /// Those of one kind of aggregate.
    Kind(AggregateType),
    /// An organization's, or those of one kind of its aggregates.
    Organization(&'a OrgId, Option<AggregateType>),
    /// Those of some aggregates, at least one.
    Aggregates(&'a [StreamId]),
}

/// By which connection events come, and how much of them is asked for ahead of its use.
#[derive(Clone)]
pub(crate) struct Way {
    pub(crate) client: Client,
    pub(crate) context: jetstream::Context,
    pub(crate) pace: Pace,
    /// What the answers took by which tails began.
    pub(crate) times: AnswerTimes,
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
    /// Whether more is asked for before all of it is used.
    pub(crate) asks_ahead: bool,
    /// How long it is believed without a word that nothing comes, where there are copies that may
    /// have heard of nothing.
    pub(crate) patience: Duration,
}

impl Way {
    /// For what follows the log by itself, always takes what comes, and is only a few.
    pub(crate) fn of_this_program(log: &EventLog) -> Self {
        let client = log.followers().clone();
        Self {
            times: log.answers_to_followers().clone(),
            context: jetstream::new(client.clone()),
            pace: log.pace().clone(),
            messages: 4_096,
            bytes: (8 * 1024 * 1024).max(2 * client.max_payload()),
            asks_ahead: true,
            patience: Duration::from_secs(10),
            client,
        }
    }

    /// For those outside, who may be many and may take nothing. The bytes have room for the largest
    /// event; without it the server would never send one.
    pub(crate) fn of_readers(log: &EventLog) -> Self {
        let client = log.readers().clone();
        Self {
            times: log.answers_to_readers().clone(),
            context: jetstream::new(client.clone()),
            pace: log.pace().clone(),
            messages: 128,
            bytes: client.max_payload() + 64 * 1024,
            asks_ahead: false,
            patience: Duration::from_secs(30),
            client,
        }
    }
}

impl Way {
    /// How often the server says at least that a consumer is there; two such silences mean that it is
    /// lost. Whatever it says comes behind all else that is on its way.
    pub(crate) fn heartbeat(&self) -> Duration {
        self.times.patience() / 2
    }

    /// What reads the same stream by this way. Much else may be on it, which comes first.
    pub(crate) fn reader(&self, stream: &LogStream) -> StreamReader {
        let patience = Patience::of(self.times.patience());
        StreamReader::new(self.client.clone(), stream).with(patience)
    }
}
