//! The server's side of a tail.

use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer, pull};
use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::time::Instant;
use uuid::Uuid;

use crate::mark::{Mark, MarkError};
use crate::pull::{Messages, Pull};
use crate::streams::LogStream;
use crate::way::Way;
use crate::{ReadError, TailError, connection};

const EXPIRES: Duration = Duration::from_secs(20);
/// The server drops a consumer that nobody reads after this time, unless it was deleted before.
const ABANDONED: Duration = Duration::from_mins(1);

/// A source, and what waits in it.
pub(super) struct Opened {
    pub(super) source: Source,
    pub(super) pending: u64,
    /// Where the leader's stream ended before; 0 if there are no copies.
    pub(super) end: u64,
    /// Whether nothing up to there follows what was taken.
    pub(super) is_sure: bool,
}

/// The server's side of a tail, recreated after every fault.
pub(super) struct Source {
    pub(super) messages: Messages,
    /// The consumer's own count, which has no gap even where the filter leaves events out.
    delivered: u64,
    _consumer: Consumer,
}

/// A consumer at the server, or one that may exist. Dropping this value deletes it.
struct Consumer {
    client: Client,
    stream: String,
    name: String,
}

impl Consumer {
    fn new(way: &Way, stream: &LogStream) -> Self {
        Self {
            client: way.client.clone(),
            stream: stream.name.clone(),
            name: Uuid::new_v4().simple().to_string(),
        }
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        if connection::check(&self.client).is_err() {
            return;
        }
        let (client, stream, name) = (self.client.clone(), &self.stream, &self.name);
        let subject = format!("$JS.API.CONSUMER.DELETE.{stream}.{name}");
        // No answer is needed: if this is lost, the server drops the consumer itself.
        runtime.spawn(async move { client.publish(subject, Bytes::new()).await });
    }
}

/// Why nothing arrives.
pub(super) enum Fault {
    /// Something in the log is not as it should be.
    Log(TailError),
    /// The server does not answer.
    Server(String),
}

/// One message, with the server's information about it.
pub(super) struct Delivered {
    pub(super) message: Message,
    pub(super) sequence: u64,
    /// Events that wait after it.
    pub(super) pending: u64,
}

/// Creates a consumer of what follows `last`, on any copy that the server chooses. Returns how many
/// events that copy has there, and whether the leader agrees if it has none.
pub(super) async fn open(
    way: Way,
    stream: LogStream,
    filters: Vec<String>,
    last: Mark,
) -> Result<Opened, Fault> {
    let asked = Instant::now();
    let opened = ask_for(&way, stream, filters, last).await;
    way.times.learn(asked.elapsed());
    opened
}

async fn ask_for(
    way: &Way,
    stream: LogStream,
    filters: Vec<String>,
    last: Mark,
) -> Result<Opened, Fault> {
    let reader = way.reader(&stream);
    if last.event.is_some() {
        reader.check(last).await?;
    }
    let mut end = 0;
    if stream.replicated {
        end = reader.state().await?.last_sequence;
    }
    let (source, pending) = consume(way, &stream, filters.clone(), last.sequence)
        .await
        .map_err(Fault::Server)?;
    let is_sure = pending == 0
        && reader
            .has_none_between(&filters, last.sequence, end)
            .await?;
    Ok(Opened {
        source,
        pending,
        end,
        is_sure: is_sure || !stream.replicated,
    })
}

async fn consume(
    way: &Way,
    stream: &LogStream,
    filter_subjects: Vec<String>,
    last: u64,
) -> Result<(Source, u64), String> {
    connection::check(&way.client)?;
    let made = Consumer::new(way, stream);
    let config = pull::Config {
        name: Some(made.name.clone()),
        deliver_policy: DeliverPolicy::ByStartSequence {
            start_sequence: last.saturating_add(1),
        },
        ack_policy: AckPolicy::None,
        filter_subjects,
        inactive_threshold: ABANDONED,
        max_deliver: 1,
        memory_storage: true,
        num_replicas: 1,
        ..pull::Config::default()
    };
    let mut context = way.context.clone();
    context.set_timeout(way.times.timeout());
    let consumer: PullConsumer = context
        .create_consumer_on_stream(config, &stream.name)
        .await
        .map_err(|e| e.to_string())?;
    let pending = consumer.cached_info().num_pending;
    let messages = if way.asks_ahead {
        let messages = consumer
            .stream()
            .max_messages_per_batch(way.messages)
            .max_bytes_per_batch(way.bytes)
            .heartbeat(way.heartbeat())
            .expires(EXPIRES)
            .messages();
        Messages::Ahead(messages.await.map_err(|e| e.to_string())?)
    } else {
        Messages::Asked(Pull::of(way, &stream.name, &made.name).await?)
    };
    let source = Source {
        messages,
        delivered: 0,
        _consumer: made,
    };
    Ok((source, pending))
}

impl Source {
    pub(super) fn check(&mut self, message: Message) -> Result<Delivered, Fault> {
        let info = message.info();
        let info = info.map_err(|error| Fault::Server(error.to_string()))?;
        if info.consumer_sequence != self.delivered + 1 {
            let lost = format!("message {} was lost on the way", self.delivered + 1);
            return Err(Fault::Server(lost));
        }
        self.delivered += 1;
        let (sequence, pending) = (info.stream_sequence, info.pending);
        self.messages.are_behind(pending > 0);
        Ok(Delivered {
            message,
            sequence,
            pending,
        })
    }
}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Self {
        Self::Server(error.to_string())
    }
}

impl From<MarkError> for Fault {
    fn from(error: MarkError) -> Self {
        match error {
            MarkError::WentBack(went_back) => Self::Log(went_back.into()),
            MarkError::Read(error) => error.into(),
        }
    }
}
