//! A log of the test's own on the server in `NATS_URL`, with keys and events in it.
//!
//! There is no Postgres: everything here must work without it.

use std::env;
use std::sync::Arc;
use std::time::Duration;

use access::{Access, ApiKey, LimitSettings};
use chrono::{DateTime, Utc};
use event_log::{Binding, Commit, EventLog, Expected, Keyring, LogSettings, Position, Write};
use schemas::{AggregateType, Context, Event, EventId, KeyId, NewEvent, OrgId, RunId, StreamId};
use schemas::{key, record, run, webhook, workflow};
use service::{Clock, SystemClock};
use sqlx::postgres::PgPoolOptions;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Far longer than anything takes; only a failing test waits for it.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);
/// Interval between two polls: the code that is waited for needs the processors more.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

pub(crate) struct World {
    pub(crate) log: EventLog,
    pub(crate) org: OrgId,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) shutdown: CancellationToken,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::at(&unused_prefix()).await
    }

    pub(crate) async fn at(prefix: &str) -> Self {
        Self::by(&nats_url(), prefix).await
    }

    /// A log with this latency in each direction.
    pub(crate) async fn far_away(way: Duration) -> Self {
        Self::far_away_at(&unused_prefix(), way).await
    }

    /// The same under this prefix.
    pub(crate) async fn far_away_at(prefix: &str, way: Duration) -> Self {
        let far_away = local_servers::far_away(&nats_url(), way).unwrap();
        Self::by(&far_away, prefix).await
    }

    /// A log whose processes save a checkpoint of persons after this many events.
    pub(crate) async fn noting(fold_events: u64) -> Self {
        Self::with(LogSettings {
            fold_events,
            log_prefix: unused_prefix(),
            ..LogSettings::at(nats_url())
        })
        .await
    }

    async fn by(url: &str, prefix: &str) -> Self {
        let mut settings = LogSettings::at(url);
        settings.log_prefix = prefix.to_owned();
        Self::with(settings).await
    }

    async fn with(settings: LogSettings) -> Self {
        let keyring = Keyring::from_master(&[9; 32]);
        Self {
            log: EventLog::connect(&settings, keyring).await.unwrap(),
            org: OrgId::from(Uuid::new_v4()),
            clock: Arc::new(SystemClock),
            shutdown: CancellationToken::new(),
        }
    }

    /// Another organization in the same log.
    pub(crate) fn neighbour(&self) -> Self {
        Self {
            log: self.log.clone(),
            org: OrgId::from(Uuid::new_v4()),
            clock: self.clock.clone(),
            shutdown: self.shutdown.clone(),
        }
    }

    /// The keys, without a Postgres that could count their requests.
    pub(crate) async fn access(&self) -> Access {
        let nowhere = "postgres://nobody@127.0.0.1:1/nothing";
        let pool = PgPoolOptions::new()
            .acquire_timeout(Duration::from_millis(50))
            .connect_lazy(nowhere)
            .unwrap();
        let limits = LimitSettings {
            timeout: Duration::from_millis(20),
            ..LimitSettings::default()
        };
        let (clock, shutdown) = (self.clock.clone(), self.shutdown.clone());
        Access::start(&self.log, &pool, limits, clock, shutdown)
            .await
            .unwrap()
    }

    /// Creates a key and returns what its owner holds.
    pub(crate) async fn key(&self, scopes: &[&str], expires_at: Option<DateTime<Utc>>) -> Key {
        let secret = ApiKey::generate().unwrap();
        let id = KeyId::from(Uuid::new_v4());
        let created = key::Created {
            key_id: id.clone(),
            name: "test".to_owned(),
            scopes: scopes.iter().map(ToString::to_string).collect(),
            rate_limit: 1_000_000,
            expires_at,
            key_sha256: secret.sha256().to_string(),
            created_by: key::Giver::Operator,
        };
        let stream = StreamId::new(&self.org, AggregateType::Key, id.as_str());
        let sequence = self.append(&stream, 0, Event::KeyCreated(created)).await;
        Key {
            secret: secret.expose().to_owned(),
            stream,
            id,
            sequence: sequence.sequence(),
        }
    }

    pub(crate) async fn revoke(&self, key: &Key) {
        let revoked = key::Revoked {
            key_id: key.id.clone(),
        };
        self.append(&key.stream, key.sequence, Event::KeyRevoked(revoked))
            .await;
    }

    /// Appends one event after the sequence `seen` of its aggregate (0: the first).
    pub(crate) async fn append(&self, stream: &StreamId, seen: u64, event: Event) -> Position {
        let write = write(stream, seen, vec![event]);
        self.log.commit(write.into()).await.unwrap()
    }

    /// Starts a run: `workflow.triggered`, then `run.started`.
    pub(crate) async fn run(&self) -> (RunId, Position) {
        let id = RunId::from(Uuid::new_v4());
        let stream = StreamId::new(&self.org, AggregateType::Run, id.as_str());
        let triggered = Event::WorkflowTriggered(workflow::Triggered {
            run_id: id.clone(),
            workflow_id: "w1".into(),
            workflow_version: 1,
            trigger_payload: serde_json::Map::new(),
        });
        let started = Event::RunStarted(run::Started {
            run_id: id.clone(),
            workflow_id: "w1".into(),
        });
        let write = write(&stream, 0, vec![triggered, started]);
        (id, self.log.commit(write.into()).await.unwrap())
    }

    /// Creates contacts, named by their number, each on its own.
    pub(crate) async fn contacts(&self, ids: std::ops::Range<usize>, padding: usize) -> u64 {
        let commits = ids.map(|id| {
            let id = format!("c{id}");
            let stream = StreamId::new(&self.org, AggregateType::Contact, &id);
            Commit::from(write(&stream, 0, vec![contact(&id, padding)]))
        });
        let commits: Vec<Commit> = commits.collect();
        let mut last = 0;
        // As many at a time as a loaded machine stores before the log's timeout.
        for some in commits.chunks(250) {
            for position in self.log.commit_each(some.to_vec()).await {
                last = last.max(position.unwrap().sequence());
            }
        }
        last
    }

    /// Creates a webhook endpoint; returns its id and secret.
    pub(crate) async fn webhook(&self, url: &str, events: &[&str]) -> Hook {
        use base64::Engine as _;
        let id = Uuid::new_v4().to_string();
        let random = [Uuid::new_v4(), Uuid::new_v4()].map(Uuid::into_bytes);
        let secret = base64::engine::general_purpose::STANDARD.encode(random.concat());
        let secret = format!("whsec_{secret}");
        let binding = Binding::WebhookSecret(self.org.clone(), id.as_str().into());
        let created = webhook::Created {
            id: id.as_str().into(),
            url: url.to_owned(),
            events: events.iter().map(ToString::to_string).collect(),
            description: None,
            secret: self.log.vault().seal(&binding, &secret).await.unwrap(),
        };
        let stream = StreamId::new(&self.org, AggregateType::Webhook, &id);
        self.append(&stream, 0, Event::WebhookCreated(created))
            .await;
        Hook { id, secret, stream }
    }

    /// The events of an aggregate.
    pub(crate) async fn events_of(&self, stream: &StreamId) -> Vec<Event> {
        let recorded = self.log.load(stream).await.unwrap();
        recorded
            .into_iter()
            .map(|recorded| recorded.event)
            .collect()
    }
}

fn nats_url() -> String {
    env::var("NATS_URL").expect("NATS_URL names a server for tests")
}

pub(crate) fn unused_prefix() -> String {
    format!("push{}", &Uuid::new_v4().simple().to_string()[..12])
}

pub(crate) struct Key {
    pub(crate) secret: String,
    stream: StreamId,
    id: KeyId,
    pub(crate) sequence: u64,
}

pub(crate) struct Hook {
    pub(crate) id: String,
    pub(crate) secret: String,
    pub(crate) stream: StreamId,
}

pub(crate) fn write(stream: &StreamId, seen: u64, events: Vec<Event>) -> Write {
    Write {
        stream: stream.clone(),
        expected: Expected::after((seen > 0).then_some(seen)),
        events: events.into_iter().map(new_event).collect(),
    }
}

pub(crate) fn new_event(event: Event) -> NewEvent {
    let id = Uuid::new_v4();
    let (trace, span) = (id.as_u128(), id.as_u64_pair().0);
    NewEvent {
        id: EventId(id),
        time: Utc::now(),
        event,
        context: Context {
            traceparent: Some(schemas::Traceparent::from_parts(trace, span)),
            ..Context::default()
        },
        receipt: None,
    }
}

pub(crate) fn contact(id: &str, padding: usize) -> Event {
    Event::ContactCreated(record::Contact {
        id: id.into(),
        first_name: Some("x".repeat(padding)),
        last_name: None,
        email: None,
        phone: None,
        job_title: None,
        company_id: None,
        company_name: None,
        city: None,
        country: None,
        owner: None,
        created_at: DateTime::UNIX_EPOCH,
    })
}

pub(crate) fn contact_deleted(id: &str) -> Event {
    Event::ContactDeleted(record::Deleted { id: id.into() })
}

/// Waits until a condition holds.
pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let end = tokio::time::Instant::now() + TIMEOUT;
    while !holds().await {
        assert!(tokio::time::Instant::now() < end, "not in time: {what}");
        tokio::time::sleep(LOOK).await;
    }
}
