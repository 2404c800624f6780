//! Writing a backup's records into empty streams: each message at the sequence it had.

use std::time::Duration;

use async_nats::jetstream::stream::Stream;
use async_nats::{Client, HeaderMap, Request, Subject};
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};

use super::BackupError;
use super::record::{Message, Record};
use crate::append::{BATCH_BYTES, BATCH_MESSAGES, Outcome, Wire, read_answer};

/// How long the server may take for a batch.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Messages erased, or keys written, concurrently.
const SIDE_BY_SIDE: usize = 16;
/// The subject of messages that only take up a sequence, to be erased at once.
const NOTHING: &str = "_.nothing._";

const EXPECTED_LAST: &str = "Nats-Expected-Last-Sequence";

/// Fills one stream of the log.
pub(super) struct Filler {
    client: Client,
    stream: Stream,
    name: String,
    /// Prefix of every subject.
    prefix: String,
    /// The first token of every subject, for messages that only take up a sequence.
    root: String,
    /// The last sequence written.
    last: u64,
    waiting: Vec<Wire>,
    bytes: usize,
    /// Sequences among the waiting that are to be erased.
    nothing: Vec<u64>,
}

impl Filler {
    /// For a stream that begins after the sequence `last`.
    pub(super) fn new(client: Client, stream: Stream, prefix: &str, all: &str, last: u64) -> Self {
        Self {
            client,
            name: stream.cached_info().config.name.clone(),
            stream,
            prefix: prefix.to_owned(),
            root: all.trim_end_matches('>').to_owned(),
            last,
            waiting: Vec::new(),
            bytes: 0,
            nothing: Vec::new(),
        }
    }

    /// Adds a record; it is in the stream once [`Filler::flush`] has returned.
    pub(super) async fn add(&mut self, record: &Record) -> Result<(), BackupError> {
        match record {
            Record::Message(message) => {
                let wire = Wire {
                    subject: Subject::from(format!("{}{}", self.prefix, message.subject)),
                    headers: message.header_map(),
                    payload: message.payload.clone(),
                };
                self.push(wire, message.size()).await
            }
            Record::Gap { from, to } => {
                for sequence in (*from).max(self.next())..=*to {
                    let wire = Wire {
                        subject: Subject::from(format!("{}{NOTHING}", self.root)),
                        headers: HeaderMap::new(),
                        payload: Bytes::new(),
                    };
                    self.push(wire, 0).await?;
                    self.nothing.push(sequence);
                }
                Ok(())
            }
        }
    }

    /// Writes the waiting messages as one batch, and erases those that only took up a sequence.
    pub(super) async fn flush(&mut self) -> Result<(), BackupError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let (count, to) = (self.waiting.len(), self.next() - 1);
        let answer = tokio::time::timeout(TIMEOUT, self.send()).await;
        let answer = answer.unwrap_or_else(|_| Outcome::Silence("no answer in time".to_owned()));
        match answer {
            Outcome::Stored(last) if last == to => {}
            Outcome::Stored(last) => {
                return Err(self.refused(format!("{count} messages end at {last}, not at {to}")));
            }
            other => return Err(self.refused(format!("up to {to}: {other:?}"))),
        }
        self.last = to;
        self.bytes = 0;
        let (stream, name) = (&self.stream, &self.name);
        let erase = std::mem::take(&mut self.nothing).into_iter();
        let erase = erase.map(
            async |sequence| match stream.delete_message(sequence).await {
                Ok(_) => Ok(()),
                Err(error) => Err(refused(name, format!("erasing {sequence}: {error}"))),
            },
        );
        stream::iter(erase)
            .buffer_unordered(SIDE_BY_SIDE)
            .try_collect()
            .await
    }

    /// The sequence that the next message gets.
    fn next(&self) -> u64 {
        self.last + self.waiting.len() as u64 + 1
    }

    async fn push(&mut self, wire: Wire, size: usize) -> Result<(), BackupError> {
        let full = self.waiting.len() == BATCH_MESSAGES;
        if full || (!self.waiting.is_empty() && self.bytes + size > BATCH_BYTES) {
            self.flush().await?;
        }
        self.bytes += size;
        self.waiting.push(wire);
        Ok(())
    }

    async fn send(&mut self) -> Outcome {
        let mut wires = std::mem::take(&mut self.waiting);
        if let Some(first) = wires.first_mut() {
            first.headers.insert(EXPECTED_LAST, self.last.to_string());
        }
        let size = wires.len();
        let Some(mut last) = wires.pop() else {
            return Outcome::Silence("nothing to write".to_owned());
        };
        if size > 1 {
            let inbox = self.client.new_inbox();
            let batch = inbox.rsplit('.').next().unwrap_or(&inbox);
            for (mut wire, sequence) in wires.into_iter().zip(1..) {
                wire.place_in_batch(batch, sequence);
                let (subject, headers) = (wire.subject, wire.headers);
                let sent = self
                    .client
                    .publish_with_headers(subject, headers, wire.payload);
                if let Err(error) = sent.await {
                    return Outcome::Silence(error.to_string());
                }
            }
            last.place_in_batch(batch, size);
            last.commit_batch();
        }
        request(&self.client, last.subject, last.headers, last.payload).await
    }

    fn refused(&self, reason: String) -> BackupError {
        refused(&self.name, reason)
    }
}

/// Writes an owner's key. Keys of forgotten owners are not restored.
pub(super) async fn put_key(
    client: &Client,
    bucket: &str,
    prefix: &str,
    message: &Message,
) -> Result<(), BackupError> {
    let subject = Subject::from(format!("{prefix}{}", message.subject));
    let (headers, payload) = (message.header_map(), message.payload.clone());
    let answer = request(client, subject, headers, payload);
    match tokio::time::timeout(TIMEOUT, answer).await {
        Ok(Outcome::Stored(_)) => Ok(()),
        Ok(other) => Err(refused(bucket, format!("{other:?}"))),
        Err(_) => Err(refused(bucket, "no answer in time".to_owned())),
    }
}

fn refused(stream: &str, reason: String) -> BackupError {
    BackupError::Refused {
        stream: stream.to_owned(),
        reason,
    }
}

async fn request(client: &Client, subject: Subject, headers: HeaderMap, payload: Bytes) -> Outcome {
    let request = Request::new().headers(headers).payload(payload);
    match client.send_request(subject, request.timeout(None)).await {
        Ok(message) => read_answer(&message.payload),
        Err(error) => Outcome::Silence(error.to_string()),
    }
}
