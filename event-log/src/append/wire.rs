//! Commits as messages, and the server's answers to them.

use std::hash::{DefaultHasher, Hasher as _};

use async_nats::{HeaderMap, Subject};
use bytes::Bytes;
use schemas::nesting::{self, MAX_EVENT_LEVELS};
use schemas::{EventId, NewEvent};
use serde::Deserialize;

use super::{AppendError, Commit, Write};
use crate::envelope;
use crate::party::Party;
use crate::subject::Subjects;
use crate::throttle::MESSAGE_BYTES;

/// Limits of a batch: the server's limit on messages, and the bytes that pass in one flush without
/// delaying others.
pub(crate) const BATCH_MESSAGES: usize = 1_000;
pub(crate) const BATCH_BYTES: usize = 1024 * 1024;
/// Limit of one commit.
const COMMIT_BYTES: usize = 8 * BATCH_BYTES;
/// Room for the headers that are added only for sending.
const WIRE_BYTES: usize = 256;

const EXPECTED: &str = "Nats-Expected-Last-Subject-Sequence";
const BATCH_ID: &str = "Nats-Batch-Id";
const BATCH_SEQUENCE: &str = "Nats-Batch-Sequence";
const BATCH_COMMIT: &str = "Nats-Batch-Commit";

/// One message for the log.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) subject: Subject,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Bytes,
}

/// One write's expectation, to find out later what became of it.
#[derive(Debug)]
pub(super) struct Expectation {
    pub(super) subject: Subject,
    /// The subject's hash. Two aggregates that share one only wait for each other.
    pub(super) aggregate: u64,
    pub(super) sequence: u64,
    pub(super) first: EventId,
    pub(super) last: EventId,
    /// Messages of the commit before this write's first.
    pub(super) offset: u64,
    /// How many messages the write has.
    pub(super) len: u64,
    /// Whether ids of its events are derived from their content, so that events of other commits
    /// may have the same ones.
    pub(super) derived: bool,
}

/// The version of ids that are derived from content; random ones have others (RFC 9562, section 5).
const DERIVED: usize = 8;

/// A commit that has been checked and is ready for the wire.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The party whose turn it takes.
    pub(super) party: Party,
    writes: Vec<Write>,
    /// One for each write.
    pub(super) expectations: Vec<Expectation>,
    /// Empty once they have been sent; encoded again if they must be resent, which is rare.
    wires: Vec<Wire>,
    messages: usize,
    pub(super) bytes: usize,
}

impl Prepared {
    pub(super) fn new(
        subjects: &Subjects,
        commit: Commit,
        max_payload: usize,
    ) -> Result<Self, AppendError> {
        let writes = commit.writes;
        let no_write = AppendError::Malformed("no write");
        let party = Party::of(&writes).ok_or(no_write)?;
        let messages = writes.iter().map(|write| write.events.len()).sum();
        if messages > BATCH_MESSAGES {
            return Err(AppendError::TooLarge);
        }
        let mut offset = 0;
        let mut expectations = Vec::with_capacity(writes.len());
        for write in &writes {
            let (Some(first), Some(last)) = (write.events.first(), write.events.last()) else {
                return Err(AppendError::Malformed("a write without events"));
            };
            let len = write.events.len() as u64;
            let subject = subjects.of(&write.stream);
            expectations.push(Expectation {
                aggregate: hash(&subject),
                subject,
                sequence: write.expected.sequence(),
                first: first.id,
                last: last.id,
                offset,
                len,
                derived: write.events.iter().any(is_derived),
            });
            offset += len;
        }
        let mut prepared = Self {
            party,
            writes,
            expectations,
            wires: Vec::new(),
            messages,
            bytes: 0,
        };
        prepared.encode(max_payload)?;
        Ok(prepared)
    }

    /// The ids of the events of the write with this expectation, in order.
    pub(super) fn ids(&self, expectation: &Expectation) -> impl Iterator<Item = EventId> {
        let mut writes = self.writes.iter().zip(&self.expectations);
        let write = writes.find(|(_, of_write)| of_write.offset == expectation.offset);
        let events = write.into_iter().flat_map(|(write, _)| &write.events);
        events.map(|event| event.id)
    }

    /// Its number of messages.
    pub(super) fn messages(&self) -> u64 {
        self.messages as u64
    }

    /// Its weight for its party: its messages, or as many as its bytes would make.
    pub(super) fn weight(&self) -> u64 {
        self.messages().max(self.bytes as u64 / MESSAGE_BYTES)
    }

    pub(super) fn len(&self) -> usize {
        self.messages
    }

    /// Takes its messages, to send them.
    pub(super) fn take_wires(&mut self) -> Result<Vec<Wire>, AppendError> {
        if self.wires.is_empty() {
            self.encode(usize::MAX)?;
        }
        Ok(std::mem::take(&mut self.wires))
    }

    fn encode(&mut self, max_payload: usize) -> Result<(), AppendError> {
        let no_json = |_| AppendError::Malformed("the event has no JSON form");
        (self.wires, self.bytes) = (Vec::with_capacity(self.messages), 0);
        for (write, expectation) in self.writes.iter().zip(&self.expectations) {
            for (place, event) in write.events.iter().enumerate() {
                let encoded = envelope::encode(&write.stream, event).map_err(no_json)?;
                if nesting::is_deeper(&encoded.payload, MAX_EVENT_LEVELS) {
                    return Err(AppendError::TooDeep);
                }
                let mut headers = encoded.headers;
                if encoded.size.saturating_add(WIRE_BYTES) > max_payload {
                    return Err(AppendError::TooLarge);
                }
                if place == 0 {
                    // Within a batch only a subject's first message may carry an expectation.
                    headers.insert(EXPECTED, expectation.sequence.to_string());
                }
                self.bytes += encoded.size;
                if self.bytes > COMMIT_BYTES {
                    return Err(AppendError::TooLarge);
                }
                self.wires.push(Wire {
                    subject: expectation.subject.clone(),
                    headers,
                    payload: encoded.payload,
                });
            }
        }
        Ok(())
    }
}

fn is_derived(event: &NewEvent) -> bool {
    event.id.0.get_version_num() == DERIVED
}

fn hash(subject: &Subject) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(subject.as_bytes());
    hasher.finish()
}

impl Wire {
    /// Makes it the `sequence`th message of a batch, from 1.
    pub(crate) fn place_in_batch(&mut self, batch: &str, sequence: usize) {
        self.headers.insert(BATCH_ID, batch);
        self.headers.insert(BATCH_SEQUENCE, sequence.to_string());
    }

    /// Makes it the message that ends its batch.
    pub(crate) fn commit_batch(&mut self) {
        self.headers.insert(BATCH_COMMIT, "1");
    }
}

/// The server's answer.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Stored; the sequence of the last message.
    Stored(u64),
    /// An expectation was wrong; the server does not say which.
    Conflict,
    /// Not stored, for a reason that may pass.
    NotNow(String),
    /// Not stored, and a retry is of no use.
    Never(AppendError),
    /// No answer: the events may or may not be stored.
    Silence(String),
}

impl Outcome {
    /// Its name in metrics.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Stored(_) => "none",
            Self::Conflict => "conflict",
            Self::NotNow(_) => "busy",
            Self::Never(_) => "refused",
            Self::Silence(_) => "silence",
        }
    }
}

#[derive(Deserialize)]
struct RawAnswer {
    seq: Option<u64>,
    error: Option<RawError>,
}

#[derive(Deserialize)]
struct RawError {
    #[serde(default)]
    code: u64,
    #[serde(default)]
    err_code: u64,
    #[serde(default)]
    description: String,
}

pub(crate) fn read_answer(payload: &[u8]) -> Outcome {
    match serde_json::from_slice::<RawAnswer>(payload) {
        Ok(RawAnswer {
            error: Some(error), ..
        }) => refusal(&error),
        Ok(RawAnswer {
            seq: Some(sequence),
            ..
        }) => Outcome::Stored(sequence),
        Ok(_) => Outcome::Silence("an answer without a sequence".to_owned()),
        Err(error) => Outcome::Silence(format!("an answer that is not JSON: {error}")),
    }
}

fn refusal(error: &RawError) -> Outcome {
    let said = format!("{} ({})", error.description, error.err_code);
    match (error.code, error.err_code) {
        // The last sequence is another, or is changing: both mean the same here.
        (_, 10_071 | 10_164) => Outcome::Conflict,
        // The message, its headers or the batch exceed what the stream takes.
        (_, 10_054 | 10_097 | 10_199) => Outcome::Never(AppendError::TooLarge),
        // A part of the batch was lost, or the server had no place for another batch.
        (_, 10_176 | 10_210) => Outcome::NotNow(said),
        (400, _) => Outcome::Never(AppendError::Unavailable(said)),
        _ => Outcome::NotNow(said),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u64, err_code: u64) -> Outcome {
        let error = format!(
            r#"{{"error":{{"code":{code},"err_code":{err_code},"description":"x"}},"stream":"S","seq":0}}"#
        );
        read_answer(error.as_bytes())
    }

    #[test]
    fn an_acknowledgement_contains_the_last_sequence() {
        let single = read_answer(br#"{"stream":"EVENTS","seq":7}"#);
        assert!(matches!(single, Outcome::Stored(7)));
        let batch = read_answer(br#"{"stream":"EVENTS","seq":9,"batch":"b","count":3}"#);
        assert!(matches!(batch, Outcome::Stored(9)));
    }

    #[test]
    fn both_codes_of_a_wrong_expectation_are_conflicts() {
        assert!(matches!(answer(400, 10_071), Outcome::Conflict));
        assert!(matches!(answer(400, 10_164), Outcome::Conflict));
    }

    #[test]
    fn permanent_refusals_are_distinguished_from_temporary_ones() {
        for too_large in [10_054, 10_097, 10_199] {
            let answer = answer(400, too_large);
            assert!(matches!(answer, Outcome::Never(AppendError::TooLarge)));
        }
        assert!(matches!(
            answer(400, 10_109),
            Outcome::Never(AppendError::Unavailable(_))
        ));
        assert!(matches!(answer(429, 10_210), Outcome::NotNow(_)));
        assert!(matches!(answer(400, 10_176), Outcome::NotNow(_)));
        assert!(matches!(answer(503, 10_077), Outcome::NotNow(_)));
    }

    #[test]
    fn an_answer_that_says_nothing_leaves_the_fate_open() {
        for payload in ["", "{}", "[]", "no", r#"{"seq":null}"#] {
            assert!(
                matches!(read_answer(payload.as_bytes()), Outcome::Silence(_)),
                "{payload}"
            );
        }
    }
}
