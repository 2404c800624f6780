//! Delivers one event to one endpoint and records the outcome.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use event_log::{
    AppendError, Binding, CAUSE_HEADER, EventLog, Expected, ReadError, VaultError, Write,
};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use schemas::delivery::{Attempted, Message, Outcome};
use schemas::{AggregateType, Event, EventId, Log, NewEvent, Recorded, StreamId};
use service::Clock;
use traces::Traced as _;
use uuid::Uuid;

use super::attempt::{Exchange, Response, SendError, pending, retry, tried};
use super::concurrency::Permit;
use super::directory::Endpoint;
use super::feed::{self, Feed};
use super::payload::Payload;
use super::schedule::{Schedule, retry_after};
use super::secrets::Secret;
use super::signature::SigningKey;
use super::traced;
use super::work::{Prior, Retry, Verdict, Work};
use crate::people::People;
use crate::retry::retry_while;
use crate::targets::{self, Request, Targets};

/// Number of bytes of a response that are read, so that its connection can be reused; less is kept.
const READ_BYTES: usize = 64 * 1024;

/// An event with no attempt for this long is outdated, and close to the end of what the deliveries'
/// log retains: better dropped than delivered twice.
pub(super) const TOO_OLD: TimeDelta = TimeDelta::days(7);

/// Dependencies of every attempt.
pub(super) struct Sender {
    pub(super) log: EventLog,
    pub(super) feed: Feed,
    pub(super) people: People,
    pub(super) targets: Targets,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) schedule: Schedule,
    pub(super) timeout: Duration,
}

/// One attempt to make.
pub(super) struct Job {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) work: Work,
    /// The event, if it is cached.
    pub(super) payload: Option<Arc<Payload>>,
    /// Held until the request has ended.
    pub(super) permit: Permit,
}

/// Progress of an attempt; each job reports both, in this order.
#[derive(Clone, Copy, Debug)]
pub(super) enum Progress {
    /// The endpoint is free for another request.
    Answered(Verdict),
    /// The outcome is recorded in the log.
    Recorded {
        /// The next attempt, if there is one.
        retry: Option<Retry>,
        /// The sequence of the record, if this attempt wrote one.
        recorded: Option<u64>,
        /// Whether the receiver asked to get nothing any more.
        gone: bool,
    },
}

impl Sender {
    /// Makes an attempt. Waits while the log does not answer, so that no outcome is ever lost.
    pub(super) async fn deliver(&self, job: Job, tell: impl Fn(Progress)) {
        let nothing_sent = || {
            tell(Progress::Answered(Verdict::NotSent));
            tell(Progress::Recorded {
                retry: None,
                recorded: None,
                gone: false,
            });
        };
        let Some(payload) = self.payload(&job).await else {
            if let Prior::Attempted { recorded, .. } = job.work.prior {
                self.give_up(
                    recorded,
                    "the event may no longer be shown to this organization",
                )
                .await;
            }
            return nothing_sent();
        };
        let endpoint = &job.endpoint;
        let delivery = self
            .log
            .keyring()
            .delivery_id(&endpoint.id, payload.event_id);
        let stream = StreamId::new(&endpoint.org, AggregateType::Delivery, delivery.as_str());
        let (attempts, expected) = match job.work.prior {
            Prior::New => (0, Expected::Empty),
            Prior::Attempted { attempts, recorded } => (attempts, Expected::At(recorded)),
        };
        let is_new = job.work.prior == Prior::New;
        if is_new && self.clock.now() - payload.time > TOO_OLD {
            return nothing_sent();
        }
        let message = Message {
            delivery_id: delivery,
            webhook_id: endpoint.id.clone(),
            event_id: payload.event_id,
            event_sequence: payload.sequence,
            event_type: payload.event_type.clone(),
        };
        let attempt_id = Uuid::new_v4();
        let exchange = self.send(endpoint, &payload, &message, attempt_id).await;
        if is_new {
            observe_delay(&payload, &exchange);
        }
        drop(job.permit);
        tell(Progress::Answered(exchange.verdict()));
        let gone = exchange.is_gone();
        let nth = if exchange.succeeded() || is_new {
            1
        } else {
            self.place_in_round(&stream).await
        };
        let event = NewEvent {
            id: EventId(attempt_id),
            time: self.clock.now(),
            event: Event::DeliveryAttempted(exchange.attempted(
                message,
                attempts + 1,
                nth,
                &self.schedule,
            )),
            context: payload.context.clone(),
            receipt: None,
        };
        let (retry, recorded) = self.record(stream, expected, event).await;
        tell(Progress::Recorded {
            retry,
            recorded,
            gone,
        });
    }

    /// The number of the next attempt in its round; a replay request begins a round.
    async fn place_in_round(&self, stream: &StreamId) -> u32 {
        let events = retry_while(|| self.log.load(stream), ReadError::passes);
        let is_attempt = |event: &&Recorded| matches!(event.event, Event::DeliveryAttempted(_));
        let before = match events.await {
            Ok(events) => events.iter().rev().take_while(is_attempt).count(),
            Err(error) => {
                tracing::error!(%error, %stream, "A delivery cannot be read");
                usize::MAX
            }
        };
        u32::try_from(before).map_or(u32::MAX, |before| before + 1)
    }

    /// The event's payload; `None` if it was erased, cannot be read, or may no longer be sent to
    /// the organization.
    async fn payload(&self, job: &Job) -> Option<Arc<Payload>> {
        if let Some(payload) = &job.payload {
            return Some(payload.clone());
        }
        let sequence = job.work.sequence;
        let found = retry_while(
            || self.log.get(self.feed.log(), sequence),
            ReadError::passes,
        );
        let recorded = found
            .await
            .inspect_err(|error| tracing::error!(%error, "An event cannot be sent"));
        let recorded = recorded.ok()??;
        if feed::is_of_persons(&recorded) {
            self.people.settle().await;
            let now = self.clock.now();
            if !feed::is_for(&recorded, &job.endpoint.org, &self.people, now) {
                return None;
            }
        }
        let data = self.people.reveal(&recorded).await;
        Payload::encode(&self.log, &recorded, data)
            .inspect_err(|error| tracing::error!(sequence, %error, "An event cannot be sent"))
            .ok()
            .map(Arc::new)
    }

    async fn send(
        &self,
        endpoint: &Endpoint,
        payload: &Payload,
        message: &Message,
        attempt_id: Uuid,
    ) -> Exchange {
        let (org, url) = (&endpoint.org, &endpoint.url);
        let request = match self.targets.request(org, Method::POST, url) {
            Ok(request) => request,
            Err(refused) => return self.unsent(SendError::Failed(refused.to_string())),
        };
        let at = self.clock.now();
        let id = message.delivery_id.as_str();
        let timestamp = at.timestamp();
        let signed = self.signatures(endpoint, at, |key| key.sign(id, timestamp, &payload.body));
        let signatures = match signed.await {
            Ok(signatures) => signatures,
            Err(reason) => return self.unsent(SendError::Impossible(reason)),
        };
        let started = Instant::now();
        let keyring = self.log.keyring();
        let cause = keyring.cause_header(&payload.context, payload.cause);
        let mut request = request.with(|request| {
            request
                .timeout(self.timeout)
                .header(CONTENT_TYPE, "application/json")
                .header("webhook-id", id)
                .header("webhook-timestamp", timestamp)
                .header("webhook-signature", signatures)
                .header(CAUSE_HEADER, cause)
                .body(payload.body.clone())
        });
        let span = traced::span_of(payload, message);
        if let Some(trace) = traced::sent_on(&span, payload, attempt_id) {
            request = request.with(|request| request.header("traceparent", trace.as_str()));
        }
        let answer = self.call(request, at);
        let answer = answer.within(&span).await;
        let duration = started.elapsed();
        let exchange = Exchange {
            at,
            duration,
            answer,
        };
        let outcome = if exchange.succeeded() {
            "succeeded"
        } else {
            span.failed();
            "failed"
        };
        metrics::histogram!("waypost_webhook_attempt_seconds", "outcome" => outcome)
            .record(duration.as_secs_f64());
        exchange
    }

    async fn call(&self, request: Request, now: DateTime<Utc>) -> Result<Response, SendError> {
        let answer = request.send().await;
        let answer = answer.map_err(|error| SendError::Failed(targets::reason(&error)))?;
        let status = answer.status().as_u16();
        traces::note("http.response.status_code", i64::from(status));
        let retry_after = asked_wait(answer.headers(), now);
        // The status is what counts, even if the rest of the response does not arrive.
        let body = targets::read_body(answer, READ_BYTES).await;
        Ok(Response {
            status,
            body: body.map(|body| body.bytes.to_vec()).unwrap_or_default(),
            retry_after,
        })
    }

    fn unsent(&self, why: SendError) -> Exchange {
        Exchange {
            at: self.clock.now(),
            duration: Duration::ZERO,
            answer: Err(why),
        }
    }

    /// The result of `sign` for each secret in force, newest first.
    async fn signatures(
        &self,
        endpoint: &Endpoint,
        now: DateTime<Utc>,
        sign: impl Fn(&SigningKey) -> String,
    ) -> Result<String, &'static str> {
        let mut signatures = Vec::new();
        for secret in endpoint.secrets.in_force(now) {
            signatures.push(sign(self.signing_key(endpoint, secret).await?));
        }
        Ok(signatures.join(" "))
    }

    async fn signing_key<'s>(
        &self,
        endpoint: &Endpoint,
        secret: &'s Secret,
    ) -> Result<&'s SigningKey, &'static str> {
        let unseal = || async {
            let binding = Binding::WebhookSecret(endpoint.org.clone(), endpoint.id.clone());
            let unsealed = retry_while(
                || self.log.vault().unseal(&binding, &secret.sealed),
                VaultError::passes,
            );
            let secret = unsealed
                .await
                .map_err(|_| "the signing secret was destroyed")?;
            SigningKey::parse(&secret).ok_or("the signing secret cannot be used")
        };
        secret.key.get_or_try_init(unseal).await
    }

    /// Appends the outcome of an attempt; returns the next attempt and the sequence of the record.
    async fn record(
        &self,
        stream: StreamId,
        expected: Expected,
        event: NewEvent,
    ) -> (Option<Retry>, Option<u64>) {
        let write = Write {
            stream: stream.clone(),
            expected,
            events: vec![event.clone()],
        };
        let appended = retry_while(
            || self.log.commit(write.clone().into()),
            AppendError::passes,
        );
        match (appended.await, &event.event) {
            (Ok(position), Event::DeliveryAttempted(attempted)) => {
                let sequence = position.sequence();
                (retry(attempted, sequence), Some(sequence))
            }
            // Another process owned the queue meanwhile and tried as well: its record counts.
            (Err(AppendError::Conflict), _) => (self.left_to_do(&stream).await, None),
            (outcome, _) => {
                tracing::error!(?outcome, %stream, "A delivery attempt cannot be recorded");
                (None, None)
            }
        }
    }

    /// The next attempt of a delivery according to the log.
    async fn left_to_do(&self, stream: &StreamId) -> Option<Retry> {
        let last = retry_while(|| self.log.last(stream), ReadError::passes);
        let recorded = last
            .await
            .inspect_err(|error| tracing::error!(%error, %stream, "A delivery cannot be read"))
            .ok()??;
        pending(&recorded)
    }

    /// Ends a delivery whose last event is at `recorded` and that is not retried.
    pub(super) async fn give_up(&self, recorded: u64, reason: &str) {
        let last = retry_while(
            || self.log.get(Log::Deliveries, recorded),
            ReadError::passes,
        );
        let Ok(Some(last)) = last.await else { return };
        let Some((message, attempts)) = tried(&last.event) else {
            return;
        };
        let now = self.clock.now();
        let ended = Attempted {
            message: message.clone(),
            attempt: attempts + 1,
            at: now,
            duration_ms: 0,
            status: None,
            error: Some(format!("not retried: {reason}")),
            response: None,
            outcome: Outcome::Failed,
        };
        let event = NewEvent {
            id: EventId(Uuid::new_v4()),
            time: now,
            event: Event::DeliveryAttempted(ended),
            context: last.context.clone(),
            receipt: None,
        };
        self.record(last.stream.clone(), Expected::At(recorded), event)
            .await;
    }
}

fn asked_wait(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    retry_after(headers.get(RETRY_AFTER)?.to_str().ok()?, now)
}

fn observe_delay(payload: &Payload, exchange: &Exchange) {
    let delay = (exchange.at - payload.time).to_std().unwrap_or_default();
    metrics::histogram!("waypost_webhook_delay_seconds").record(delay.as_secs_f64());
}
