//! Ways to the log: this program's own, and that of readers outside.

use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream;
use schemas::{AggregateType, OrgId, StreamId};

use crate::EventLog;
use crate::pace::Pace;
use crate::read::StreamReader;
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
            context: context(&client),
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
            context: context(&client),
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
    /// What reads the same stream by this way.
    pub(crate) fn reader(&self, stream: &LogStream) -> StreamReader {
        StreamReader::new(self.client.clone(), stream)
    }
}

fn context(client: &Client) -> jetstream::Context {
    let mut context = jetstream::new(client.clone());
    context.set_timeout(Duration::from_secs(2));
    context
}
