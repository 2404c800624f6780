//! Commits as messages, and the server's answers to them.

use async_nats::{HeaderMap, Message, Subject};
use bytes::Bytes;
use schemas::EventId;
use serde::Deserialize;

use super::{AppendError, Commit};
use crate::envelope;
use crate::subject::Subjects;

/// What a batch may hold: the server's limit on messages, and what passes in one flush without
/// holding up others.
pub(super) const BATCH_MESSAGES: usize = 1_000;
pub(super) const BATCH_BYTES: usize = 1024 * 1024;

const EXPECTED: &str = "Nats-Expected-Last-Subject-Sequence";
const BATCH_ID: &str = "Nats-Batch-Id";
const BATCH_SEQUENCE: &str = "Nats-Batch-Sequence";
const BATCH_COMMIT: &str = "Nats-Batch-Commit";

/// Codes with which JetStream answers a wrong expectation; both mean the same here.
const CONFLICT_CODES: [u64; 2] = [10_071, 10_164];

/// One message of a commit.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    pub(super) subject: Subject,
    headers: HeaderMap,
    pub(super) payload: Bytes,
}

/// One write's expectation, to find out later what became of it.
#[derive(Clone, Debug)]
pub(super) struct Expectation {
    pub(super) subject: Subject,
    pub(super) sequence: u64,
    pub(super) first: EventId,
    /// Messages of the commit before this write's first.
    pub(super) offset: u64,
}

/// A commit ready for the wire.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    pub(super) messages: Vec<Wire>,
    pub(super) expectations: Vec<Expectation>,
    pub(super) bytes: usize,
}

impl Prepared {
    pub(super) fn new(
        subjects: &Subjects,
        commit: &Commit,
        max_payload: usize,
    ) -> Result<Self, AppendError> {
        let mut prepared = Self {
            messages: Vec::new(),
            expectations: Vec::new(),
            bytes: 0,
        };
        for write in &commit.writes {
            prepared.add(subjects, write, max_payload)?;
        }
        let fits = prepared.messages.len() <= BATCH_MESSAGES && prepared.bytes <= 8 * BATCH_BYTES;
        if fits {
            Ok(prepared)
        } else {
            Err(AppendError::TooLarge)
        }
    }

    fn add(
        &mut self,
        subjects: &Subjects,
        write: &super::Write,
        max_payload: usize,
    ) -> Result<(), AppendError> {
        let subject = subjects.of(&write.stream);
        let sequence = write.expected.sequence();
        let offset = self.messages.len() as u64;
        for (place, event) in write.events.iter().enumerate() {
            let encoded = envelope::encode(&write.stream, event)
                .map_err(|_| AppendError::Malformed("the event has no JSON form"))?;
            let mut headers = encoded.headers;
            // Room is left for the headers that only the wire knows.
            if encoded.size + 256 > max_payload {
                return Err(AppendError::TooLarge);
            }
            if place == 0 {
                // Within a batch only a subject's first message may carry an expectation.
                headers.insert(EXPECTED, sequence.to_string());
                let first = encoded.id;
                self.expectations.push(Expectation {
                    subject: subject.clone(),
                    sequence,
                    first,
                    offset,
                });
            }
            self.bytes += encoded.size;
            let payload = encoded.payload;
            self.messages.push(Wire {
                subject: subject.clone(),
                headers,
                payload,
            });
        }
        Ok(())
    }
}

impl Wire {
    pub(super) fn single_headers(&self) -> HeaderMap {
        self.headers.clone()
    }

    /// The headers as the `sequence`th message of a batch, from 1.
    pub(super) fn batch_headers(&self, batch: &str, sequence: usize, last: bool) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.insert(BATCH_ID, batch);
        headers.insert(BATCH_SEQUENCE, sequence.to_string());
        if last {
            headers.insert(BATCH_COMMIT, "1");
        }
        headers
    }
}

/// What the server said.
#[derive(Debug)]
pub(super) enum Answer {
    /// Stored; the sequence of the last message.
    Stored(u64),
    /// An expectation was wrong, without saying whose.
    Conflict,
    /// The server cannot take it now.
    Refused(String),
}

#[derive(Deserialize)]
struct RawAnswer {
    seq: Option<u64>,
    error: Option<RawError>,
}

#[derive(Deserialize)]
struct RawError {
    #[serde(default)]
    err_code: u64,
    #[serde(default)]
    description: String,
}

pub(super) fn read_answer(message: &Message) -> Answer {
    match serde_json::from_slice::<RawAnswer>(&message.payload) {
        Ok(RawAnswer {
            error: Some(error), ..
        }) if CONFLICT_CODES.contains(&error.err_code) => Answer::Conflict,
        Ok(RawAnswer {
            error: Some(error), ..
        }) => Answer::Refused(format!("{} ({})", error.description, error.err_code)),
        Ok(RawAnswer {
            seq: Some(sequence),
            ..
        }) => Answer::Stored(sequence),
        Ok(_) => Answer::Refused("an answer without a sequence".to_owned()),
        Err(error) => Answer::Refused(format!("an answer that is not JSON: {error}")),
    }
}
