//! Reading from the leader of a stream, which receives every write: what it does not find does not
//! exist.

use std::future::Future;

use async_nats::Client;
use async_nats::jetstream::Context;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{Info, LastRawMessageErrorKind, RawMessageErrorKind, Stream};
use chrono::{DateTime, Utc};

use super::{ReadTimeout, Stored};
use crate::{ReadError, connection};

#[derive(Clone)]
pub(super) struct Leader {
    client: Client,
    /// Of the same connection: a stream's own handle asks over the one that it was opened on.
    context: Context,
    name: String,
    pub(super) timeout: ReadTimeout,
}

/// A message with the time at which the leader stored it.
pub(super) struct Taken {
    pub(super) stored: Stored,
    pub(super) at: DateTime<Utc>,
}

impl Leader {
    pub(super) fn new(context: &Context, name: &str, timeout: ReadTimeout) -> Self {
        Self {
            client: context.client(),
            context: context.clone(),
            name: name.to_owned(),
            timeout,
        }
    }

    pub(super) async fn get(&self, sequence: u64) -> Result<Option<Stored>, ReadError> {
        let stream = self.stream().await?;
        let found = self.wait(stream.get_raw_message(sequence)).await?;
        match found {
            Ok(message) => Ok(Some(stored(message))),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(ReadError::Unavailable(error.to_string())),
        }
    }

    /// The first message after a sequence on a subject, which may have wildcards.
    pub(super) async fn first_after(
        &self,
        subject: &str,
        sequence: u64,
    ) -> Result<Option<Stored>, ReadError> {
        let from = sequence.saturating_add(1);
        let stream = self.stream().await?;
        let first = stream.get_first_raw_message_by_subject(subject, from);
        match self.wait(first).await? {
            Ok(message) => Ok(Some(stored(message))),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(ReadError::Unavailable(error.to_string())),
        }
    }

    /// The last message on a subject; on `>` that of the whole stream.
    pub(super) async fn last(&self, subject: &str) -> Result<Option<Taken>, ReadError> {
        let stream = self.stream().await?;
        let last = stream.get_last_raw_message_by_subject(subject);
        match self.wait(last).await? {
            Ok(message) => Ok(Some(Taken {
                at: taken_at(&message),
                stored: stored(message),
            })),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(ReadError::Unavailable(error.to_string())),
        }
    }

    pub(super) async fn info(&self) -> Result<Info, ReadError> {
        let stream = self.stream().await?;
        let info = self.wait(stream.get_info()).await?;
        info.map_err(|error| ReadError::Unavailable(error.to_string()))
    }

    /// The stream as a part of the reader's own connection, which asks the server nothing.
    async fn stream(&self) -> Result<Stream<()>, ReadError> {
        let stream = self.context.get_stream_no_info(&self.name).await;
        stream.map_err(|error| ReadError::Unavailable(error.to_string()))
    }

    async fn wait<T>(&self, answer: impl Future<Output = T>) -> Result<T, ReadError> {
        connection::check(&self.client).map_err(ReadError::Unavailable)?;
        self.timeout.wait(&self.client, answer).await
    }
}

fn taken_at(message: &StreamMessage) -> DateTime<Utc> {
    let nanoseconds = i64::try_from(message.time.unix_timestamp_nanos());
    DateTime::from_timestamp_nanos(nanoseconds.unwrap_or(i64::MAX))
}

fn stored(message: StreamMessage) -> Stored {
    Stored {
        subject: message.subject,
        sequence: message.sequence,
        headers: message.headers,
        payload: message.payload,
    }
}
