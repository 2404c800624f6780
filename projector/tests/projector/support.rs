//! A separate log and database per test, on the servers that `NATS_URL` and `DATABASE_URL` name.

use std::env;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use chrono::{DateTime, Utc};
use event_log::{Commit, EventLog, Expected, Keyring, LogSettings, Position, Write};
use projector::{BATCH, Dependencies, ProjectorSettings};
use schemas::record::{Company, Contact, Deleted};
use schemas::run::Started;
use schemas::workflow::Triggered;
use schemas::{AggregateType, Context, Event, EventId, Log, NewEvent, OrgId, StreamId};
use service::SystemClock;
use service::health::{self, Readiness};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _, PgPool};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;
use uuid::Uuid;

pub(crate) struct World {
    pub(crate) log: EventLog,
    pub(crate) pool: PgPool,
    pub(crate) org: OrgId,
    pub(crate) home: TempDir,
    pub(crate) prefix: String,
    database: PgConnectOptions,
    pub(crate) database_url: String,
}

impl World {
    pub(crate) async fn new() -> Self {
        let name = format!("t{}", &Uuid::new_v4().simple().to_string()[..12]);
        let url = env::var("DATABASE_URL").expect("DATABASE_URL names a server for tests");
        let server = PgConnectOptions::from_str(&url).unwrap();
        let mut admin = server.connect().await.unwrap();
        admin
            .execute(AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .await
            .unwrap();
        let pool = PgPoolOptions::new()
            .max_connections(4)
            .connect_with(server.clone().database(&name))
            .await
            .unwrap();
        service::database::migrate(&pool).await.unwrap();
        let home = tempfile::tempdir().unwrap();
        let settings = log_settings(&name);
        let keyring = Keyring::load(home.path()).unwrap();
        let log = EventLog::connect(&settings, keyring).await.unwrap();
        Self {
            log,
            pool,
            org: OrgId::from(Uuid::new_v4()),
            home,
            database_url: with_database(&url, &name),
            prefix: name,
            database: server,
        }
    }

    pub(crate) fn deps(&self) -> Dependencies {
        Dependencies {
            log: self.log.clone(),
            pool: self.pool.clone(),
            clock: Arc::new(SystemClock),
            settings: ProjectorSettings {
                batch: BATCH,
                writers: 4,
                takeover: Duration::from_secs(3),
            },
            readiness: Readiness::default(),
        }
    }

    /// A projector within this process.
    pub(crate) fn start(&self) -> Running {
        start(self.deps())
    }

    pub(crate) fn stream(&self, aggregate: AggregateType, id: &str) -> StreamId {
        StreamId::new(&self.org, aggregate, id)
    }

    /// Appends events of one aggregate that has `seen` events up to that sequence.
    pub(crate) async fn append(&self, stream: StreamId, seen: u64, events: Vec<Event>) -> u64 {
        let write = Write {
            stream,
            expected: if seen == 0 {
                Expected::Empty
            } else {
                Expected::At(seen)
            },
            events: events.into_iter().map(new_event).collect(),
        };
        let position = self.log.commit(Commit::from(write)).await.unwrap();
        position.sequence()
    }

    /// Appends new contacts, each its own commit.
    pub(crate) async fn append_contacts(&self, ids: impl Iterator<Item = String>) -> Position {
        let made = ids.map(|id| {
            let made = Event::ContactCreated(contact(&id, "Ada"));
            (AggregateType::Contact, id, made)
        });
        let positions = self.append_each(made).await;
        let latest = positions
            .into_iter()
            .max_by_key(|position| position.sequence());
        latest.unwrap()
    }

    /// Appends `each` contacts and as many companies, mixed; returns each kind's sequences.
    pub(crate) async fn append_contacts_and_companies(&self, each: usize) -> [Vec<i64>; 2] {
        let made = (0..2 * each).map(|n| {
            let id = format!("m{n}");
            if n.is_multiple_of(2) {
                let made = Event::ContactCreated(contact(&id, "Ada"));
                (AggregateType::Contact, id, made)
            } else {
                let made = Event::CompanyCreated(company(&id));
                (AggregateType::Company, id, made)
            }
        });
        let positions = self.append_each(made).await;
        let of = |kind: usize| {
            let kinds = positions.iter().skip(kind).step_by(2);
            let mut of: Vec<_> = kinds.map(|one| one.sequence().cast_signed()).collect();
            of.sort_unstable();
            of
        };
        [of(0), of(1)]
    }

    /// Appends first events of aggregates, each its own commit.
    async fn append_each(
        &self,
        made: impl Iterator<Item = (AggregateType, String, Event)>,
    ) -> Vec<Position> {
        let commits = made.map(|(kind, id, event)| {
            Commit::from(Write {
                stream: self.stream(kind, &id),
                expected: Expected::Empty,
                events: vec![new_event(event)],
            })
        });
        let positions = self.log.commit_each(commits.collect()).await;
        positions.into_iter().map(Result::unwrap).collect()
    }

    /// Waits until every projection of a log has reached a sequence.
    pub(crate) async fn caught_up(&self, log: Log, sequence: u64) {
        eventually("the projections catch up", async || {
            self.slowest(log).await >= i64::try_from(sequence).unwrap()
        })
        .await;
    }

    pub(crate) async fn slowest(&self, log: Log) -> i64 {
        let slowest: Option<i64> =
            sqlx::query_scalar("SELECT min(sequence) FROM projection_checkpoints WHERE log = $1")
                .bind(projector::log_name(log))
                .fetch_one(&self.pool)
                .await
                .unwrap();
        slowest.unwrap_or(-1)
    }

    /// Deletes rows and positions of projections, each named as its table: they start as new ones.
    pub(crate) async fn make_new(&self, names: &[&str]) {
        let sql = format!(
            "TRUNCATE {}, totals, field_totals, values_by_time, list_blocks",
            names.join(", ")
        );
        sqlx::query(AssertSqlSafe(sql))
            .execute(&self.pool)
            .await
            .unwrap();
        sqlx::query("DELETE FROM projection_checkpoints WHERE name = ANY($1)")
            .bind(names)
            .execute(&self.pool)
            .await
            .unwrap();
    }

    pub(crate) async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&self.pool).await.unwrap()
    }

    /// Counts the blocks of all lists and the values of all fields from the rows, and compares what
    /// is stored with that.
    async fn assert_counts(&self) {
        for (table, counted) in [
            ("list_blocks", "SELECT count_list_blocks()"),
            ("field_totals", "SELECT count_field_totals()"),
            ("values_by_time", "SELECT count_values_by_time()"),
        ] {
            let mut transaction = self.pool.begin().await.unwrap();
            let keep = format!("CREATE TEMPORARY TABLE kept ON COMMIT DROP AS TABLE {table}");
            transaction.execute(AssertSqlSafe(keep)).await.unwrap();
            transaction.execute(counted).await.unwrap();
            let different = format!(
                "SELECT 'kept ' || to_json(one)::text FROM (TABLE kept EXCEPT TABLE {table}) AS one
                 UNION ALL
                 SELECT 'counted ' || to_json(one)::text
                 FROM (TABLE {table} EXCEPT TABLE kept) AS one"
            );
            let different: Vec<String> = sqlx::query_scalar(AssertSqlSafe(different))
                .fetch_all(&mut *transaction)
                .await
                .unwrap();
            assert!(different.is_empty(), "{different:#?}");
            transaction.rollback().await.unwrap();
        }
    }

    /// Has the events after a sequence delivered once more.
    pub(crate) async fn project_again_from(&self, sequence: u64) {
        sqlx::query(
            "UPDATE projection_checkpoints SET sequence = $1, event_id = NULL WHERE log = 'events'",
        )
        .bind(i64::try_from(sequence).unwrap())
        .execute(&self.pool)
        .await
        .unwrap();
    }

    /// Removes what the test created on the shared servers.
    pub(crate) async fn end(self) {
        self.assert_counts().await;
        self.end_spoilt().await;
    }

    /// The same after rows were changed by hand.
    pub(crate) async fn end_spoilt(self) {
        self.pool.close().await;
        let mut admin = self.database.connect().await.unwrap();
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.prefix);
        admin.execute(AssertSqlSafe(drop)).await.unwrap();
        let client = nats().await;
        let context = async_nats::jetstream::new(client);
        for name in ["EVENTS", "LOCATIONS", "DELIVERIES", "KV_KEYS"] {
            let kv = name.strip_prefix("KV_");
            let stream = match kv {
                Some(bucket) => format!("KV_{}{bucket}", self.prefix),
                None => format!("{}{name}", self.prefix),
            };
            context.delete_stream(stream).await.ok();
        }
    }
}

pub(crate) async fn nats() -> async_nats::Client {
    let address = async_nats::ServerAddr::from_str(&nats_url()).unwrap();
    let name = |given: Option<&str>| given.unwrap_or_default().to_owned();
    let (user, password) = (name(address.username()), name(address.password()));
    let options = async_nats::ConnectOptions::with_user_and_password(user, password);
    options.connect(address).await.unwrap()
}

pub(crate) fn nats_url() -> String {
    env::var("NATS_URL").expect("NATS_URL names a server for tests")
}

pub(crate) fn log_settings(prefix: &str) -> LogSettings {
    let mut settings = LogSettings::at(nats_url());
    prefix.clone_into(&mut settings.log_prefix);
    // Thousands of appends at once on a busy machine: the test is about what follows them.
    settings.log_timeout_ms = 20_000;
    settings
}

fn with_database(url: &str, name: &str) -> String {
    let (server, _) = url.rsplit_once('/').unwrap();
    format!("{server}/{name}")
}

pub(crate) fn start(deps: Dependencies) -> Running {
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(projector::run(deps, shutdown.clone()));
    Running { shutdown, task }
}

/// A projector at work.
pub(crate) struct Running {
    shutdown: CancellationToken,
    task: JoinHandle<Result<(), projector::Error>>,
}

impl Running {
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.unwrap().unwrap();
    }
}

pub(crate) fn new_event(event: Event) -> NewEvent {
    NewEvent {
        id: EventId(Uuid::new_v4()),
        time: now(),
        event,
        context: Context::default(),
        receipt: None,
    }
}

/// The time in microseconds, as the log and Postgres store it.
pub(crate) fn now() -> DateTime<Utc> {
    DateTime::from_timestamp_micros(Utc::now().timestamp_micros()).unwrap()
}

pub(crate) fn contact(id: &str, first_name: &str) -> Contact {
    Contact {
        id: id.into(),
        first_name: Some(first_name.to_owned()),
        last_name: Some("Lovelace".to_owned()),
        email: Some(format!("{id}@example.test")),
        phone: None,
        job_title: None,
        company_id: None,
        company_name: None,
        city: None,
        country: None,
        owner: None,
        created_at: now(),
    }
}

fn company(id: &str) -> Company {
    Company {
        id: id.into(),
        name: "Acme".to_owned(),
        domain: None,
        industry: None,
        phone: None,
        email: None,
        address: None,
        city: None,
        country: None,
        employees: None,
        annual_revenue: None,
        owner: None,
        created_at: now(),
    }
}

pub(crate) fn triggered(run: &str, workflow: &str, version: u32) -> Event {
    Event::WorkflowTriggered(Triggered {
        run_id: run.into(),
        workflow_id: workflow.into(),
        workflow_version: version,
        trigger_payload: serde_json::Map::new(),
    })
}

pub(crate) fn started(run: &str, workflow: &str) -> Event {
    Event::RunStarted(Started {
        run_id: run.into(),
        workflow_id: workflow.into(),
    })
}

pub(crate) fn deleted(id: &str) -> Event {
    Event::ContactDeleted(Deleted { id: id.into() })
}

/// The response of `/readyz`.
pub(crate) async fn readiness(readiness: &Readiness) -> (StatusCode, String) {
    let request = Request::get("/readyz").body(Body::empty()).unwrap();
    let answer = health::router(readiness.clone())
        .oneshot(request)
        .await
        .unwrap();
    let status = answer.status();
    let body = to_bytes(answer.into_body(), 1 << 16).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// Waits for something to become true.
pub(crate) async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(90);
    while !is_so().await {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        sleep(Duration::from_millis(10)).await;
    }
}
