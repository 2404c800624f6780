//! Requests some messages at a time from a consumer, and more only once these were taken.
//!
//! The client library's stream requests ahead, and continues while nobody takes anything. Here a
//! reader that takes nothing holds what it requested last, and costs the server nothing.

use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::pull;
use async_nats::{StatusCode, Subscriber};
use futures::{FutureExt as _, StreamExt as _};
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use crate::way::Way;

/// How long one request waits at the server for messages to come.
const EXPIRES: Duration = Duration::from_secs(20);

/// How a consumer's messages come from the server.
pub(crate) enum Messages {
    /// Requested ahead of their use.
    Ahead(pull::Stream),
    /// Some at a time.
    Asked(Pull),
}

/// Answers of one consumer.
pub(crate) struct Pull {
    way: Way,
    heartbeat: Duration,
    /// The subject on which the consumer takes requests.
    subject: String,
    inbox: String,
    answers: Subscriber,
    /// When the server last sent something, or was asked.
    heard: Instant,
    /// Messages that the request in flight may still deliver.
    left: usize,
    /// Whether more followed the last message, so that the next answer need not wait for any.
    is_behind: bool,
    /// When that answer was requested.
    asked: Option<Instant>,
}

impl Pull {
    pub(crate) async fn of(way: &Way, stream: &str, consumer: &str) -> Result<Self, String> {
        let inbox = way.client.new_inbox();
        let answers = way.client.subscribe(inbox.clone()).await;
        Ok(Self {
            subject: format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"),
            inbox,
            answers: answers.map_err(|error| error.to_string())?,
            heartbeat: way.heartbeat(),
            way: way.clone(),
            heard: Instant::now(),
            left: 0,
            is_behind: false,
            asked: None,
        })
    }

    /// Waits for the next message. Cancelling the wait loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Message, String> {
        loop {
            if self.left == 0 {
                self.ask().await?;
            }
            // Counted from when the server last sent something, however often the wait is
            // cancelled.
            let answer = timeout_at(self.heard + 2 * self.heartbeat, self.answers.next()).await;
            let answer = answer.map_err(|_| "the server is silent".to_owned())?;
            self.heard = Instant::now();
            let message = answer.ok_or("the connection is closed")?;
            match message.status.unwrap_or(StatusCode::OK) {
                StatusCode::OK => {
                    self.left -= 1;
                    if let Some(asked) = self.asked.take() {
                        self.way.throttle.answered(asked.elapsed());
                    }
                    let context = self.way.context.clone();
                    return Ok(Message { message, context });
                }
                StatusCode::IDLE_HEARTBEAT => {}
                // The request expired, or has no room for the next message.
                StatusCode::TIMEOUT | StatusCode::NOT_FOUND => self.left = 0,
                status if status.as_u16() == 409 && !ends(message.description.as_deref()) => {
                    self.left = 0;
                }
                status => {
                    let what = message.description.as_deref().unwrap_or_default();
                    return Err(format!("{status} {what}"));
                }
            }
        }
    }

    /// A message that is here already.
    pub(crate) fn ready(&mut self) -> Option<Result<Message, String>> {
        self.next().now_or_never()
    }

    async fn ask(&mut self) -> Result<(), String> {
        let request = json!({
            "batch": self.way.messages, "max_bytes": self.way.bytes,
            "expires": nanoseconds(EXPIRES), "idle_heartbeat": nanoseconds(self.heartbeat),
        });
        let (subject, inbox) = (self.subject.clone(), self.inbox.clone());
        let sent = self
            .way
            .client
            .publish_with_reply(subject, inbox, request.to_string().into());
        sent.await.map_err(|error| error.to_string())?;
        self.heard = Instant::now();
        self.left = self.way.messages;
        self.asked = self.is_behind.then(Instant::now);
        Ok(())
    }
}

impl Messages {
    /// Learns whether more follows the last message.
    pub(crate) fn are_behind(&mut self, is_behind: bool) {
        if let Self::Asked(pull) = self {
            pull.is_behind = is_behind;
        }
    }

    /// Waits for the next message. Cancelling the wait loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Message, String> {
        match self {
            Self::Ahead(stream) => {
                let next = stream.next().await.ok_or("the server ended it")?;
                next.map_err(|error| error.to_string())
            }
            Self::Asked(pull) => pull.next().await,
        }
    }

    /// One that is here already.
    pub(crate) fn ready(&mut self) -> Option<Result<Message, String>> {
        match self {
            Self::Ahead(stream) => {
                let next = stream.next().now_or_never().flatten()?;
                Some(next.map_err(|error| error.to_string()))
            }
            Self::Asked(pull) => pull.ready(),
        }
    }
}

/// Whether a consumer with this description has nothing more to give.
fn ends(description: Option<&str>) -> bool {
    let ends = ["Consumer Deleted", "Consumer is push based", "Exceeded Max"];
    description.is_some_and(|said| ends.iter().any(|end| said.starts_with(end)))
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
