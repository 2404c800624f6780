//! Webhooks, as received by a real receiver.

mod delivery;
mod endpoint;
mod failure;
mod persons;
mod restart;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use event_log::Tail;
use schemas::delivery::{Attempted, Outcome};
use schemas::{AggregateType, Event, Log, StreamId};
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use workflow_runner::leases::{Group, Work};
use workflow_runner::people::People;
use workflow_runner::targets::{TargetSettings, Targets};
use workflow_runner::webhooks::{self, Dependencies, WebhookSettings};

use crate::support::{Hook, World, eventually};

const LEASE: Duration = Duration::from_secs(2);

/// Retries soon enough for tests.
pub(crate) fn settings() -> WebhookSettings {
    WebhookSettings {
        retries: vec![Duration::from_millis(100), Duration::from_millis(200)],
        timeout: Duration::from_secs(2),
        ..WebhookSettings::default()
    }
}

/// A process that delivers.
pub(crate) struct Runner {
    shutdown: CancellationToken,
    task: JoinHandle<Result<(), webhooks::Error>>,
}

impl Runner {
    pub(crate) async fn start(world: &World) -> Self {
        Self::with(world, settings()).await
    }

    pub(crate) async fn with(world: &World, settings: WebhookSettings) -> Self {
        Box::pin(Self::reaching(world, settings, true)).await
    }

    async fn reaching(world: &World, settings: WebhookSettings, allow_private: bool) -> Self {
        let (people, tail) = People::start(&world.log).await.unwrap();
        let group = Group::join(&world.log, LEASE).await.unwrap();
        let open = if allow_private { "1" } else { "0" };
        let open = open.parse().unwrap();
        let dependencies = Dependencies {
            log: world.log.clone(),
            people: people.clone(),
            targets: Targets::new(TargetSettings { open }, Vec::new()).unwrap(),
            clock: world.clock.clone(),
            leases: group.leases(Work::Webhooks),
            settings,
        };
        let shutdown = CancellationToken::new();
        let delivering = Box::pin(webhooks::run(dependencies, shutdown.clone()));
        let task = tokio::spawn(async move {
            let ended = tokio::select! {
                ended = delivering => ended,
                error = people.follow(tail) => panic!("{error}"),
            };
            group.leave().await;
            ended
        });
        Self { shutdown, task }
    }

    /// Ends it as a signal would.
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.unwrap().unwrap();
    }

    /// Ends it in the middle of its work, without cleanup.
    pub(crate) async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }
}

/// A request that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) at: Instant,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).map(|value| value.to_str().unwrap());
        value.unwrap_or_default()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The id of the contact that it is about.
    pub(crate) fn contact(&self) -> String {
        self.json()["data"]["id"].as_str().unwrap().to_owned()
    }
}

type Reply = Box<dyn Fn(&Received, usize) -> Response + Send + Sync>;

struct Inner {
    received: Mutex<Vec<Received>>,
    reply: Mutex<Reply>,
    delay: Mutex<Duration>,
}

/// A receiver that answers as configured; 200 by default.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) addr: SocketAddr,
    inner: Arc<Inner>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let inner = Arc::new(Inner {
            received: Mutex::default(),
            reply: Mutex::new(Box::new(|_, _| StatusCode::OK.into_response())),
            delay: Mutex::default(),
        });
        let router = Router::new().fallback(receive).with_state(inner.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { addr, inner }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// Answers each later request depending on the request and its number, counted from 1 over all.
    pub(crate) fn reply(
        &self,
        reply: impl Fn(&Received, usize) -> Response + Send + Sync + 'static,
    ) {
        *self.inner.reply.lock().unwrap() = Box::new(reply);
    }

    pub(crate) fn answer(&self, status: u16) {
        let status = StatusCode::from_u16(status).unwrap();
        self.reply(move |_, _| status.into_response());
    }

    /// Delays requests to `/slow`.
    pub(crate) fn delay(&self, delay: Duration) {
        *self.inner.delay.lock().unwrap() = delay;
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.inner.received.lock().unwrap().clone()
    }

    /// All requests received, once there are at least `count`.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<Received> {
        let what = format!("{count} requests");
        eventually(&what, async || {
            self.inner.received.lock().unwrap().len() >= count
        })
        .await;
        self.received()
    }
}

async fn receive(
    State(inner): State<Arc<Inner>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let received = Received {
        at: Instant::now(),
        path: uri.path().to_owned(),
        headers,
        body,
    };
    let number = {
        let mut all = inner.received.lock().unwrap();
        all.push(received.clone());
        all.len()
    };
    if received.path.starts_with("/slow") {
        let delay = *inner.delay.lock().unwrap();
        tokio::time::sleep(delay).await;
    }
    let reply = inner.reply.lock().unwrap();
    reply(&received, number)
}

/// The attempts at one delivery, oldest first.
pub(crate) async fn attempts(world: &World, delivery: &str) -> Vec<Attempted> {
    let stream = StreamId::new(&world.org, AggregateType::Delivery, delivery);
    let events = world.events_of(&stream).await;
    events.into_iter().map(attempted).collect()
}

fn attempted(event: Event) -> Attempted {
    match event {
        Event::DeliveryAttempted(attempted) => attempted,
        other => panic!("{} is no attempt", other.name()),
    }
}

/// Follows all attempts of the log.
pub(crate) struct Attempts(Tail);

impl Attempts {
    pub(crate) async fn follow(world: &World) -> Self {
        Self(world.log.tail(Log::Deliveries, 0, &[]).await.unwrap())
    }

    /// Waits until `count` more deliveries have ended; returns the attempts that were made.
    pub(crate) async fn until_ended(&mut self, count: usize) -> Vec<Attempted> {
        let (mut made, mut ended) = (Vec::new(), HashSet::new());
        while ended.len() < count {
            let batch = tokio::time::timeout(crate::support::TIMEOUT, self.0.next(100));
            for item in batch.await.expect("attempts in time").unwrap().items {
                let event_log::Item::Event(recorded) = item else {
                    panic!("an attempt cannot be read");
                };
                let attempted = attempted(Arc::unwrap_or_clone(recorded).event);
                if matches!(attempted.outcome, Outcome::Succeeded | Outcome::Failed) {
                    ended.insert(attempted.message.delivery_id.clone());
                }
                made.push(attempted);
            }
        }
        made
    }
}

/// Waits until the endpoint has been disabled; returns the reason.
pub(crate) async fn disabled(world: &World, hook: &Hook) -> String {
    let mut reason = None;
    eventually("the endpoint to be disabled", async || {
        let events = world.events_of(&hook.stream).await;
        reason = events.iter().find_map(|event| match event {
            Event::WebhookDisabled(disabled) => Some(disabled.reason.clone()),
            _ => None,
        });
        reason.is_some()
    })
    .await;
    reason.unwrap()
}
