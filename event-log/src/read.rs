//! Reading aggregates: direct gets, batched where there is more than one message.

use std::collections::HashMap;
use std::time::Duration;

use async_nats::{Client, HeaderMap, Message, StatusCode, Subject};
use futures::StreamExt as _;
use schemas::{Log, Recorded, StreamId};
use serde_json::json;

use crate::streams::LogStream;
use crate::{EventLog, Position, ReadError, envelope};

/// Messages a batched get answers at most.
const BATCH: usize = 1_000;
const PATIENCE: Duration = Duration::from_secs(2);

/// A message as it stands in a stream.
pub(crate) struct Stored {
    pub(crate) subject: Subject,
    pub(crate) sequence: u64,
    pub(crate) headers: HeaderMap,
    payload: bytes::Bytes,
}

/// Reads one stream.
#[derive(Clone)]
pub(crate) struct StreamReader {
    client: Client,
    /// Where the server takes direct gets for this stream.
    direct: String,
}

impl StreamReader {
    pub(crate) fn new(client: Client, stream: &LogStream) -> Self {
        Self {
            client,
            direct: format!("$JS.API.DIRECT.GET.{}", stream.name),
        }
    }

    /// The last sequence of each subject that has messages.
    pub(crate) async fn last_sequences(
        &self,
        subjects: &[Subject],
    ) -> Result<HashMap<String, u64>, ReadError> {
        let mut lasts = HashMap::with_capacity(subjects.len());
        for some in subjects.chunks(BATCH) {
            let asked = self.last_of_some(some).await?;
            lasts.extend(
                asked
                    .into_iter()
                    .map(|stored| (stored.subject.to_string(), stored.sequence)),
            );
        }
        Ok(lasts)
    }

    async fn last_of_some(&self, subjects: &[Subject]) -> Result<Vec<Stored>, ReadError> {
        let subjects: Vec<&str> = subjects.iter().map(Subject::as_str).collect();
        self.get_many(&json!({ "multi_last": subjects, "batch": subjects.len() }))
            .await
    }

    /// The first message on `subject` behind `sequence`.
    pub(crate) async fn first_after(
        &self,
        subject: &Subject,
        sequence: u64,
    ) -> Result<Option<Stored>, ReadError> {
        self.get_one(&json!({ "seq": sequence + 1, "next_by_subj": subject.as_str() }))
            .await
    }

    async fn last(&self, subject: &Subject) -> Result<Option<Stored>, ReadError> {
        self.get_one(&json!({ "last_by_subj": subject.as_str() }))
            .await
    }

    async fn get_one(&self, query: &serde_json::Value) -> Result<Option<Stored>, ReadError> {
        let answer = self
            .client
            .request(self.direct.clone(), query.to_string().into())
            .await;
        let message = answer.map_err(|error| ReadError::Unavailable(error.to_string()))?;
        read_message(message)
    }

    /// Collects a batched get's answers up to the empty message that ends them.
    pub(crate) async fn get_many(
        &self,
        query: &serde_json::Value,
    ) -> Result<Vec<Stored>, ReadError> {
        let failed = |error: String| ReadError::Unavailable(error);
        let inbox = self.client.new_inbox();
        let subscribed = self.client.subscribe(inbox.clone()).await;
        let mut answers = subscribed.map_err(|e| failed(e.to_string()))?;
        let sent =
            self.client
                .publish_with_reply(self.direct.clone(), inbox, query.to_string().into());
        sent.await.map_err(|e| failed(e.to_string()))?;
        let mut found = Vec::new();
        loop {
            let answer = tokio::time::timeout(PATIENCE, answers.next()).await;
            let message = answer
                .ok()
                .flatten()
                .ok_or_else(|| failed("no answer".to_owned()))?;
            if message.status == Some(StatusCode::from_u16(204).unwrap_or(StatusCode::OK)) {
                return Ok(found);
            }
            match read_message(message)? {
                Some(stored) => found.push(stored),
                None => return Ok(found),
            }
        }
    }
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

    /// All events of an aggregate, oldest first.
    pub async fn load(&self, stream: &StreamId) -> Result<Vec<Recorded>, ReadError> {
        let subject = self.subjects().of(stream);
        let reader = self.reader(stream.aggregate.log());
        let mut events: Vec<Recorded> = Vec::new();
        loop {
            let next = events.last().map_or(1, |last| last.sequence + 1);
            let query = json!({ "seq": next, "next_by_subj": subject.as_str(), "batch": BATCH });
            let some = reader.get_many(&query).await?;
            for stored in &some {
                events.push(decode(stored)?);
            }
            if some.len() < BATCH {
                return Ok(events);
            }
        }
    }

    /// An aggregate's last event.
    pub async fn last(&self, stream: &StreamId) -> Result<Option<Recorded>, ReadError> {
        let subject = self.subjects().of(stream);
        let stored = self.reader(stream.aggregate.log()).last(&subject).await?;
        stored.as_ref().map(decode).transpose()
    }

    /// The last event of each aggregate, in the order asked for; all must be of one stream of the
    /// log. One round trip for each thousand.
    pub async fn last_of_each(
        &self,
        streams: &[StreamId],
    ) -> Result<Vec<Option<Recorded>>, ReadError> {
        let Some(log) = streams.first().map(|stream| stream.aggregate.log()) else {
            return Ok(Vec::new());
        };
        let reader = self.reader(log);
        let subjects: Vec<Subject> = streams.iter().map(|s| self.subjects().of(s)).collect();
        let mut found = HashMap::with_capacity(subjects.len());
        for some in subjects.chunks(BATCH) {
            for stored in reader.last_of_some(some).await? {
                found.insert(stored.subject.to_string(), decode(&stored)?);
            }
        }
        Ok(subjects
            .iter()
            .map(|subject| found.get(subject.as_str()).cloned())
            .collect())
    }

    /// The event at a sequence; `None` where it was deleted or is not there yet.
    pub async fn get(&self, log: Log, sequence: u64) -> Result<Option<Recorded>, ReadError> {
        let stored = self
            .reader(log)
            .get_one(&json!({ "seq": sequence }))
            .await?;
        stored.as_ref().map(decode).transpose()
    }

    /// The position of the last event at this moment.
    pub async fn end(&self, log: Log) -> Result<Position, ReadError> {
        let info = self.streams().get(log).stream.get_info().await;
        let info = info.map_err(|error| ReadError::Unavailable(error.to_string()))?;
        Ok(self.position(log, info.state.last_sequence))
    }
}
