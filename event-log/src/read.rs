//! Reading a stream: direct gets, batched where there is more than one message.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use async_nats::jetstream::stream::{LastRawMessageErrorKind, RawMessageErrorKind, Stream};
use async_nats::{Client, HeaderMap, Message, StatusCode, Subject, Subscriber};
use chrono::{DateTime, Utc};
use futures::StreamExt as _;
use schemas::{EventId, Log, Recorded};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::envelope::event_id;
use crate::streams::LogStream;
use crate::{EventLog, ReadError, connection, envelope};

/// Messages a batched get answers at most.
pub(crate) const BATCH: usize = 1_000;
/// About how many bytes it answers at most.
pub(crate) const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// How long the server may be silent: a command that reads first still fails within two seconds.
pub(crate) const PATIENCE: Duration = Duration::from_millis(1_500);

/// How long a copy that lags is given to catch up, before it is asked again.
pub(crate) const LAG: Duration = Duration::from_millis(2);

/// The status of the empty message that ends a batched get's answers.
const END_OF_BATCH: u16 = 204;

/// A message as it stands in a stream.
pub(crate) struct Stored {
    pub(crate) subject: Subject,
    pub(crate) sequence: u64,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: bytes::Bytes,
}

/// Some messages that a batched get found.
pub(crate) struct Found {
    pub(crate) messages: Vec<Stored>,
    /// Whether there are more: the answer was cut.
    pub(crate) more: bool,
}

/// Where an event stands.
pub(crate) struct Place {
    pub(crate) sequence: u64,
    pub(crate) id: Option<EventId>,
}

/// Reads one stream.
#[derive(Clone)]
pub(crate) struct StreamReader {
    client: Client,
    stream: Stream,
    /// Where the server takes direct gets for this stream.
    direct: String,
    /// Whether a copy that lags may answer these.
    replicated: bool,
}

impl StreamReader {
    pub(crate) fn new(client: Client, stream: &LogStream) -> Self {
        Self {
            client,
            stream: stream.stream.clone(),
            direct: format!("$JS.API.DIRECT.GET.{}", stream.name),
            replicated: stream.replicated,
        }
    }

    /// Where the last event of each subject stands that has any.
    pub(crate) async fn last_places(
        &self,
        subjects: &[Subject],
    ) -> Result<HashMap<String, Place>, ReadError> {
        let lasts = self.last_of_each(subjects).await?;
        let place = |stored: Stored| {
            let (sequence, id) = (stored.sequence, event_id(&stored.headers));
            (stored.subject.to_string(), Place { sequence, id })
        };
        Ok(lasts.into_iter().map(place).collect())
    }

    /// The last message of each subject that has messages.
    pub(crate) async fn last_of_each(
        &self,
        subjects: &[Subject],
    ) -> Result<Vec<Stored>, ReadError> {
        let mut lasts = Vec::with_capacity(subjects.len());
        for some in subjects.chunks(BATCH) {
            let mut missing: Vec<&str> = some.iter().map(Subject::as_str).collect();
            loop {
                let query = json!({
                    "multi_last": missing, "batch": missing.len(), "max_bytes": BATCH_BYTES,
                });
                let found = self.get_many(&query).await?;
                let got: HashSet<&str> =
                    found.messages.iter().map(|m| m.subject.as_str()).collect();
                missing.retain(|subject| !got.contains(subject));
                let done = !found.more || got.is_empty() || missing.is_empty();
                lasts.extend(found.messages);
                if done {
                    break;
                }
            }
        }
        Ok(lasts)
    }

    /// The first event on `subject` behind `sequence`. This asks the stream's leader: a copy that
    /// lags would say that an event is not there which is.
    pub(crate) async fn first_after(
        &self,
        subject: &Subject,
        sequence: u64,
    ) -> Result<Option<Place>, ReadError> {
        self.check()?;
        let first = self
            .stream
            .get_first_raw_message_by_subject(subject, sequence + 1)
            .await;
        match first {
            Ok(message) => Ok(Some(Place {
                sequence: message.sequence,
                id: event_id(&message.headers),
            })),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(ReadError::Unavailable(error.to_string())),
        }
    }

    pub(crate) async fn last(&self, subject: &Subject) -> Result<Option<Stored>, ReadError> {
        if self.replicated {
            let last = self.last_of_leader(subject).await?;
            return Ok(last.map(|(stored, _)| stored));
        }
        self.get_one(&json!({ "last_by_subj": subject.as_str() }))
            .await
    }

    /// The last message that the leader has, and when it took it.
    async fn last_of_leader(&self, subject: &Subject) -> Result<Option<(Stored, i128)>, ReadError> {
        self.check()?;
        let last = self.stream.get_last_raw_message_by_subject(subject);
        match timeout(PATIENCE, last).await.map_err(|_| silence())? {
            Ok(message) => {
                let taken = message.time.unix_timestamp_nanos();
                let stored = Stored {
                    subject: message.subject,
                    sequence: message.sequence,
                    headers: message.headers,
                    payload: message.payload,
                };
                Ok(Some((stored, taken)))
            }
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(ReadError::Unavailable(error.to_string())),
        }
    }

    /// Whether what ends at `last` is all that the leader took since a time: a copy may not have
    /// caught up with it.
    pub(crate) async fn is_whole(
        &self,
        subject: &Subject,
        last: Option<u64>,
        since: Option<DateTime<Utc>>,
    ) -> Result<bool, ReadError> {
        if !self.replicated {
            return Ok(true);
        }
        let earliest = since.and_then(|since| since.timestamp_nanos_opt());
        let of_leader = self.last_of_leader(subject).await?;
        Ok(of_leader.is_none_or(|(stored, taken)| {
            last.is_some_and(|last| stored.sequence <= last)
                || earliest.is_some_and(|earliest| taken < i128::from(earliest))
        }))
    }

    pub(crate) async fn get_one(&self, query: &Value) -> Result<Option<Stored>, ReadError> {
        self.check()?;
        let answer = self
            .client
            .request(self.direct.clone(), query.to_string().into());
        match timeout(PATIENCE, answer).await {
            Ok(Ok(message)) => read_message(message),
            Ok(Err(error)) => Err(ReadError::Unavailable(error.to_string())),
            Err(_) => Err(silence()),
        }
    }

    /// Collects a batched get's answers up to the empty message that ends them.
    pub(crate) async fn get_many(&self, query: &Value) -> Result<Found, ReadError> {
        self.check()?;
        let asked = timeout(PATIENCE, self.ask(query)).await;
        let mut answers = asked.map_err(|_| silence())??;
        let mut messages = Vec::new();
        loop {
            let answer = timeout(PATIENCE, answers.next()).await;
            let message = answer.ok().flatten().ok_or_else(silence)?;
            if message
                .status
                .is_some_and(|status| status.as_u16() == END_OF_BATCH)
            {
                let more = pending(&message) > 0;
                return Ok(Found { messages, more });
            }
            let Some(stored) = read_message(message)? else {
                let more = false;
                return Ok(Found { messages, more });
            };
            messages.push(stored);
        }
    }

    async fn ask(&self, query: &Value) -> Result<Subscriber, ReadError> {
        let failed = |error: String| ReadError::Unavailable(error);
        let inbox = self.client.new_inbox();
        let subscribed = self.client.subscribe(inbox.clone()).await;
        let answers = subscribed.map_err(|e| failed(e.to_string()))?;
        let query = query.to_string().into();
        let sent = self
            .client
            .publish_with_reply(self.direct.clone(), inbox, query);
        sent.await.map_err(|e| failed(e.to_string()))?;
        Ok(answers)
    }

    fn check(&self) -> Result<(), ReadError> {
        connection::check(&self.client).map_err(ReadError::Unavailable)
    }
}

pub(crate) fn silence() -> ReadError {
    ReadError::Unavailable("no answer in time".to_owned())
}

/// How many messages a batched get has left out.
fn pending(end: &Message) -> u64 {
    let headers = end.headers.as_ref();
    let pending = headers.and_then(|headers| headers.get("Nats-Num-Pending"));
    pending
        .and_then(|text| text.as_str().parse().ok())
        .unwrap_or(0)
}

fn read_message(message: Message) -> Result<Option<Stored>, ReadError> {
    match message.status {
        None | Some(StatusCode::OK) => {}
        Some(StatusCode::NOT_FOUND) => return Ok(None),
        Some(status) => {
            let what = message.description.as_deref().unwrap_or_default();
            return Err(ReadError::Unavailable(format!(
                "direct get: {status} {what}"
            )));
        }
    }
    let headers = message.headers.unwrap_or_default();
    let text = |name: &'static str| headers.get(name).map(|value| value.as_str().to_owned());
    let sequence = text("Nats-Sequence").and_then(|text| text.parse().ok());
    let (Some(subject), Some(sequence)) = (text("Nats-Subject"), sequence) else {
        return Err(ReadError::Unavailable(
            "direct get: an answer without a subject".to_owned(),
        ));
    };
    Ok(Some(Stored {
        subject: Subject::from(subject),
        sequence,
        headers,
        payload: message.payload,
    }))
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
        StreamReader::new(self.client().clone(), self.streams().get(log))
    }
}
