//! Reading a stream.
//!
//! What exists is read from the nearest copy, in one round trip. Only the leader can say that
//! something does not exist: a copy may not have received it yet ([`copy`]).

mod copy;
mod leader;
mod timeout;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::stream::{Info, State};
use async_nats::{HeaderMap, Subject};
use chrono::{DateTime, SecondsFormat, Utc};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use schemas::{EventId, Log, Recorded};
use serde_json::json;
use tokio::time::{Instant, sleep};

use self::copy::Copies;
use self::leader::Leader;
pub(crate) use self::timeout::ReadTimeout;
use crate::envelope::event_id;
use crate::streams::LogStream;
use crate::{EventLog, ReadError, envelope};

/// Most messages in the answer to a batched get.
pub(crate) const BATCH: usize = 1_000;
/// Most bytes in it, approximately.
pub(crate) const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// How long to wait before asking a lagging copy again, and after which time to ask its leader
/// instead, which answers one message at a time.
const LAG: Duration = Duration::from_millis(2);
const CATCHING_UP: Duration = Duration::from_millis(50);
/// If the leader cannot be asked instead of the copy, the read fails after this time.
const LAGGING: Duration = Duration::from_millis(1_500);

/// Subjects looked up concurrently.
const SIDE_BY_SIDE: usize = 32;

/// Everything in a stream.
pub(crate) const ALL: &str = ">";

/// A message as stored in a stream.
pub(crate) struct Stored {
    pub(crate) subject: Subject,
    pub(crate) sequence: u64,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: bytes::Bytes,
}

/// Some messages in order.
pub(crate) struct Found {
    /// Empty only if there are none.
    pub(crate) messages: Vec<Stored>,
    /// Whether nothing followed the last of them when it was requested.
    pub(crate) is_complete: bool,
}

/// Where to start reading on a subject.
#[derive(Clone, Copy)]
pub(crate) enum Start {
    /// After a sequence.
    After(u64),
    /// With what the stream stored since a time by its own clock.
    Since(DateTime<Utc>),
}

/// How much to read at a time.
#[derive(Clone, Copy)]
pub(crate) struct Most {
    pub(crate) messages: usize,
    /// Approximate, and at least one message.
    pub(crate) bytes: usize,
}

impl Most {
    /// As much as the server gives.
    pub(crate) const BATCH: Self = Self {
        messages: BATCH,
        bytes: BATCH_BYTES,
    };
}

/// The place of an event.
pub(crate) struct LastEvent {
    pub(crate) sequence: u64,
    pub(crate) id: Option<EventId>,
}

/// Reads one stream.
#[derive(Clone)]
pub(crate) struct StreamReader {
    name: String,
    copies: Copies,
    leader: Leader,
    /// Whether there are copies beside the leader.
    replicated: bool,
}

impl StreamReader {
    /// A reader over the connection of `context`.
    pub(crate) fn new(context: &Context, stream: &LogStream) -> Self {
        Self {
            name: stream.name.clone(),
            copies: Copies::new(context.client(), &stream.name, stream.timeout),
            leader: Leader::new(context, &stream.name, stream.timeout),
            replicated: stream.replicated,
        }
    }

    /// The same for a caller that waits as long as it takes.
    pub(crate) fn with_long_timeout(self) -> Self {
        self.with(ReadTimeout::LONG)
    }

    /// The same with this timeout for an answer.
    pub(crate) fn with(mut self, timeout: ReadTimeout) -> Self {
        self.copies.timeout = timeout;
        self.leader.timeout = timeout;
        self
    }

    /// The stream's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The message at a sequence.
    pub(crate) async fn get(&self, sequence: u64) -> Result<Option<Stored>, ReadError> {
        let found = self.copies.one(&json!({ "seq": sequence })).await?;
        if found.is_some() || !self.replicated {
            return Ok(found);
        }
        self.leader.get(sequence).await
    }

    /// The first message on a subject.
    pub(crate) async fn first(&self, subject: &str) -> Result<Option<Stored>, ReadError> {
        let query = json!({ "seq": 1, "next_by_subj": subject });
        let found = self.copies.one(&query).await?;
        if found.is_some() || !self.replicated {
            return Ok(found);
        }
        self.leader.first_after(subject, 0).await
    }

    /// The last message on a subject.
    pub(crate) async fn last(&self, subject: &str) -> Result<Option<Stored>, ReadError> {
        if self.replicated {
            let last = self.leader.last(subject).await?;
            return Ok(last.map(|taken| taken.stored));
        }
        self.copies.one(&json!({ "last_by_subj": subject })).await
    }

    /// The first message on a subject after a sequence, as the leader has it.
    pub(crate) async fn first_after(
        &self,
        subject: &str,
        sequence: u64,
    ) -> Result<Option<Stored>, ReadError> {
        self.leader.first_after(subject, sequence).await
    }

    /// Whether the leader has nothing after `after` and up to `end` that matches one of these
    /// filters. Without filters, everything matches.
    pub(crate) async fn has_none_between(
        &self,
        filters: &[String],
        after: u64,
        end: u64,
    ) -> Result<bool, ReadError> {
        if after >= end {
            return Ok(true);
        }
        let all = [ALL.to_owned()];
        let filters = if filters.is_empty() { &all } else { filters };
        let asking = filters.iter().cloned();
        let asking = asking.map(async |filter| self.leader.first_after(&filter, after).await);
        let found: Vec<Option<Stored>> = stream::iter(asking)
            .buffer_unordered(SIDE_BY_SIDE)
            .try_collect()
            .await?;
        let is_behind = |found: &Option<Stored>| found.as_ref().is_none_or(|f| f.sequence > end);
        Ok(found.iter().all(is_behind))
    }

    /// Whether the leader still has the message at a sequence.
    pub(crate) async fn still_has(&self, sequence: u64) -> Result<bool, ReadError> {
        Ok(self.leader.get(sequence).await?.is_some())
    }

    /// The state of the stream at its leader.
    pub(crate) async fn state(&self) -> Result<State, ReadError> {
        Ok(self.info().await?.state)
    }

    /// The same, with its configuration.
    pub(crate) async fn info(&self) -> Result<Info, ReadError> {
        self.leader.info().await
    }

    /// Reads messages on a subject, which may have wildcards, from `start` on.
    pub(crate) async fn read(
        &self,
        subject: &str,
        start: Start,
        most: Most,
    ) -> Result<Found, ReadError> {
        let mut query = match start {
            Start::After(sequence) => json!({ "seq": sequence.saturating_add(1) }),
            Start::Since(time) => json!({
                "start_time": time.to_rfc3339_opts(SecondsFormat::Micros, true),
            }),
        };
        query["next_by_subj"] = json!(subject);
        query["batch"] = json!(most.messages);
        query["max_bytes"] = json!(most.bytes);
        let asked = Instant::now();
        loop {
            let copy::Found { messages, more, .. } = self.copies.many(&query).await?;
            let last = messages.last().map(|last| last.sequence);
            let is_complete = !more && self.is_all(subject, start, last).await?;
            if is_complete || last.is_some() {
                return Ok(Found {
                    messages,
                    is_complete,
                });
            }
            match start {
                Start::After(sequence) if asked.elapsed() > CATCHING_UP => {
                    let first = self.leader.first_after(subject, sequence).await?;
                    return Ok(Found {
                        is_complete: first.is_none(),
                        messages: first.into_iter().collect(),
                    });
                }
                Start::Since(_) if asked.elapsed() > LAGGING => return Err(silence()),
                _ => sleep(LAG).await,
            }
        }
    }

    /// Whether the leader has nothing on a subject after `last`, or from `start` on if nothing was
    /// found.
    async fn is_all(
        &self,
        subject: &str,
        start: Start,
        last: Option<u64>,
    ) -> Result<bool, ReadError> {
        if !self.replicated {
            return Ok(true);
        }
        let after = last.or(match start {
            Start::After(sequence) => Some(sequence),
            Start::Since(_) => None,
        });
        // For one subject, the server finds the last message sooner than that none follows.
        if let (Some(after), true) = (after, has_wildcards(subject)) {
            return Ok(self.leader.first_after(subject, after).await?.is_none());
        }
        let of_leader = self.leader.last(subject).await?;
        Ok(of_leader.is_none_or(|taken| match (after, start) {
            (Some(after), _) => taken.stored.sequence <= after,
            (None, Start::Since(since)) => taken.at < since,
            (None, Start::After(_)) => false,
        }))
    }

    /// The place of the last event of each subject that has any.
    pub(crate) async fn last_places(
        &self,
        subjects: &[Subject],
    ) -> Result<HashMap<String, LastEvent>, ReadError> {
        let lasts = self.last_of_each(subjects).await?;
        let place = |stored: Stored| {
            let (sequence, id) = (stored.sequence, event_id(&stored.headers));
            (stored.subject.to_string(), LastEvent { sequence, id })
        };
        Ok(lasts.into_iter().map(place).collect())
    }

    /// The last message of each subject that has messages.
    pub(crate) async fn last_of_each(
        &self,
        subjects: &[Subject],
    ) -> Result<Vec<Stored>, ReadError> {
        let mut lasts = Vec::with_capacity(subjects.len());
        // One place is left for the witness.
        for some in subjects.chunks(BATCH - 1) {
            lasts.extend(self.last_of_some(some).await?);
        }
        Ok(lasts)
    }

    async fn last_of_some(&self, subjects: &[Subject]) -> Result<Vec<Stored>, ReadError> {
        let witness = if self.replicated {
            self.leader.last(ALL).await?.map(|taken| taken.stored)
        } else {
            None
        };
        let asked = Instant::now();
        let mut missing: HashSet<&str> = subjects.iter().map(Subject::as_str).collect();
        let mut lasts = Vec::with_capacity(subjects.len());
        loop {
            // Asked for the leader's last message, a copy reports how far it has come.
            let witnessed = witness.iter().map(|witness| witness.subject.as_str());
            let wanted: HashSet<&str> = missing.iter().copied().chain(witnessed).collect();
            let query = json!({
                "multi_last": wanted, "batch": wanted.len(), "max_bytes": BATCH_BYTES,
            });
            let mut found = self.copies.many(&query).await?;
            let reached = found.up_to.unwrap_or(0);
            if witness.as_ref().is_some_and(|last| reached < last.sequence) {
                if asked.elapsed() > CATCHING_UP {
                    lasts.extend(self.lasts_of_leader(missing).await?);
                    return Ok(lasts);
                }
                sleep(LAG).await;
                continue;
            }
            found
                .messages
                .retain(|last| missing.remove(last.subject.as_str()));
            let done = !found.more || found.messages.is_empty() || missing.is_empty();
            lasts.extend(found.messages);
            if done {
                return Ok(lasts);
            }
        }
    }

    async fn lasts_of_leader(&self, subjects: HashSet<&str>) -> Result<Vec<Stored>, ReadError> {
        let asking = subjects.into_iter().map(str::to_owned);
        let asking = asking.map(async |subject| self.leader.last(&subject).await);
        let found: Vec<_> = stream::iter(asking)
            .buffer_unordered(SIDE_BY_SIDE)
            .try_collect()
            .await?;
        Ok(found
            .into_iter()
            .flatten()
            .map(|taken| taken.stored)
            .collect())
    }
}

fn has_wildcards(subject: &str) -> bool {
    subject.ends_with('>') || subject.split('.').any(|token| token == "*")
}

pub(crate) fn silence() -> ReadError {
    ReadError::Unavailable("no answer in time".to_owned())
}

pub(crate) fn decode(stored: &Stored) -> Result<Recorded, ReadError> {
    let Stored {
        subject,
        sequence,
        headers,
        payload,
    } = stored;
    envelope::decode(subject, *sequence, headers, payload).map_err(|reason| {
        ReadError::Undecodable {
            sequence: *sequence,
            reason,
        }
    })
}

impl EventLog {
    pub(crate) fn reader(&self, log: Log) -> StreamReader {
        StreamReader::new(self.context(), self.streams().get(log))
    }
}
