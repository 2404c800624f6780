//! Buckets of keys and values for what is not an event: leases, checkpoints and the owners' keys.

mod pieces;

use std::ops::Deref;

use async_nats::HeaderMap;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{DirectGetErrorKind, LastRawMessageErrorKind};
use async_nats::jetstream::{self, kv};
use bytes::Bytes;
use futures::TryStreamExt as _;

use self::pieces::Pieces;
use crate::{Error, LogSettings, Mark, streams};

/// The header that carries the mark.
const MARK: &str = "Waypost-Mark";

/// Headers of a message that removes a value; one with a value has neither.
const REMOVALS: [&str; 2] = ["KV-Operation", "Nats-Marker-Reason"];

/// A key-value bucket. A missing key is confirmed with its leader: a replica of the bucket may not
/// have received it yet.
#[derive(Clone, Debug)]
pub struct Bucket {
    context: jetstream::Context,
    store: kv::Store,
    /// Whether there are replicas beside the leader.
    replicated: bool,
}

impl Bucket {
    pub(crate) fn new(
        context: &jetstream::Context,
        store: kv::Store,
        settings: &LogSettings,
    ) -> Self {
        Self {
            context: context.clone(),
            store,
            replicated: settings.log_replicas > 1,
        }
    }

    /// Opens the bucket of this name; `None` if nobody has created it.
    pub(crate) async fn existing(
        context: &jetstream::Context,
        settings: &LogSettings,
        name: &str,
    ) -> Result<Option<Self>, Error> {
        let name = format!("{}{name}", settings.log_prefix);
        let failed = |reason: String| Error::Prepare {
            name: name.clone(),
            reason,
        };
        match context.get_stream(format!("KV_{name}")).await {
            Ok(_) => {}
            Err(error) if streams::is_missing(&error) => return Ok(None),
            Err(error) => return Err(failed(error.to_string())),
        }
        let store = context.get_key_value(&name).await;
        let store = store.map_err(|error| failed(error.to_string()))?;
        Ok(Some(Self::new(context, store, settings)))
    }

    /// Returns the value of a key, if it has one. One round trip if it does.
    ///
    /// # Errors
    /// If the server does not answer; the string is the error.
    pub async fn get(&self, key: &str) -> Result<Option<Bytes>, String> {
        let found = self.find(key).await?;
        Ok(found.map(|message| message.payload))
    }

    /// Returns the value of a key and its revision, as the bucket's leader has them.
    ///
    /// # Errors
    /// If the server does not answer; the string is the error.
    pub async fn newest(&self, key: &str) -> Result<Option<(Bytes, u64)>, String> {
        let found = self.find_with_leader(&self.subject(key)).await?;
        Ok(found.map(|message| (message.payload, message.sequence)))
    }

    /// Returns the value that [`Bucket::put_marked`] put, with the mark that was put beside it;
    /// `None` also if it has several pieces that do not fit together.
    ///
    /// # Errors
    /// If the server does not answer; the string is the error.
    pub async fn get_marked(&self, key: &str) -> Result<Option<(Bytes, Mark)>, String> {
        let Some(message) = self.find(key).await? else {
            return Ok(None);
        };
        match Pieces::of(&message) {
            None => Ok(Some(marked(message))),
            Some(_) => self.whole(key).await,
        }
    }

    /// Returns the mark that [`Bucket::put_marked`] put beside a value; `None` if there is none.
    ///
    /// # Errors
    /// If the server does not answer; the string is the error.
    pub(crate) async fn mark(&self, key: &str) -> Result<Option<Mark>, String> {
        let found = self.find(key).await?;
        Ok(found.map(|message| marked(message).1))
    }

    /// Puts a value of any size, and beside it, where earlier versions of the program do not see
    /// it, how far the log had been read to make the value. The previous value stays until all of
    /// it is there.
    ///
    /// # Errors
    /// If the server does not answer; the string is the error.
    pub async fn put_marked(&self, key: &str, value: Bytes, mark: Mark) -> Result<(), String> {
        let mut headers = HeaderMap::new();
        headers.insert(MARK, mark.to_string());
        let first = self.put_pieces(key, value, &mut headers).await?;
        self.publish(key, headers, first).await
    }

    /// The keys for which [`Bucket::put_marked`] put values, in no order.
    ///
    /// # Errors
    /// If the server does not answer; the string is the error.
    pub(crate) async fn keys_of_values(&self) -> Result<Vec<String>, String> {
        let keys = self.store.keys().await.map_err(|error| error.to_string())?;
        let keys: Vec<String> = keys
            .try_collect()
            .await
            .map_err(|error| error.to_string())?;
        let values = keys.into_iter().filter(|key| !pieces::is_of_piece(key));
        Ok(values.collect())
    }

    async fn publish(&self, key: &str, headers: HeaderMap, value: Bytes) -> Result<(), String> {
        let subject = self.subject(key);
        let put = self.context.publish_with_headers(subject, headers, value);
        let put = put.await.map_err(|error| error.to_string())?;
        put.await.map(drop).map_err(|error| error.to_string())
    }

    async fn find(&self, key: &str) -> Result<Option<StreamMessage>, String> {
        let subject = self.subject(key);
        let found = self
            .store
            .stream
            .direct_get_last_for_subject(&subject)
            .await;
        let found = match found {
            Ok(message) => Some(message),
            Err(error) if error.kind() == DirectGetErrorKind::NotFound => None,
            Err(error) => return Err(error.to_string()),
        };
        let found = match found.filter(has_value) {
            None if self.replicated => self.find_with_leader(&subject).await?,
            found => found,
        };
        Ok(found)
    }

    async fn find_with_leader(&self, subject: &str) -> Result<Option<StreamMessage>, String> {
        let last = self.store.stream.get_last_raw_message_by_subject(subject);
        match last.await {
            Ok(message) => Ok(Some(message).filter(has_value)),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn subject(&self, key: &str) -> String {
        format!("{}{key}", self.store.prefix)
    }
}

fn marked(message: StreamMessage) -> (Bytes, Mark) {
    let mark = message.headers.get(MARK);
    let mark = mark.and_then(|text| text.as_str().parse().ok());
    (message.payload, mark.unwrap_or_default())
}

fn has_value(message: &StreamMessage) -> bool {
    let headers = &message.headers;
    !REMOVALS.iter().any(|name| headers.get(*name).is_some())
}

/// Other methods are those of the client library.
impl Deref for Bucket {
    type Target = kv::Store;

    fn deref(&self) -> &kv::Store {
        &self.store
    }
}
