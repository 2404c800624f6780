//! A complete query API on its own read models, for one organization.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use access::{Access, ApiKey, LimitSettings};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request};
use chrono::{DateTime, Utc};
use event_log::{Commit, EventLog, Expected, Keyring, LogSettings, Position, Write};
use query_api::exports::ExportSettings;
use query_api::feed::FeedSettings;
use query_api::{Dependencies, MapSettings, QuerySettings};
use schemas::{
    AccountId, AggregateType, Context, Event, EventId, KeyId, NewEvent, OrgId, StreamId, TokenId,
    key, organization,
};
use serde_json::Value;
use service::clock::ManualClock;
use service::health::Readiness;
use service::{Clock, SystemClock};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, PgPool};
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::ServiceExt;
use uuid::Uuid;

const PREFIX: &str = "querytests";

pub(crate) struct TestApi {
    pub(crate) router: Router,
    pub(crate) log: EventLog,
    /// Writes the read models, as the projector does.
    pub(crate) pool: PgPool,
    pub(crate) org: OrgId,
    pub(crate) key: String,
    access: Access,
    database: String,
    _until: DropGuard,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    async fn of(response: axum::response::Response) -> Self {
        let (parts, body) = response.into_parts();
        Self {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: to_bytes(body, 256 << 20).await.unwrap().to_vec(),
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn error(&self) -> String {
        self.json()["error"].as_str().unwrap().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Returns one field of every item of a list.
    pub(crate) fn all(&self, field: &str) -> Vec<String> {
        let list = self.json();
        let items = list["data"].as_array().unwrap().iter();
        items
            .map(|item| item[field].as_str().unwrap().to_owned())
            .collect()
    }

    /// Returns the address of the next page, if there is one.
    pub(crate) fn next(&self) -> Option<String> {
        let link = self.header("link")?.strip_prefix('<')?;
        Some(link.strip_suffix(">; rel=\"next\"")?.to_owned())
    }
}

pub(crate) fn settings() -> QuerySettings {
    QuerySettings {
        position_wait: Duration::from_secs(5),
        position_poll: Duration::from_secs(1),
        exports: ExportSettings {
            streams: 4,
            documents: 1,
            wait: Duration::from_secs(30),
            stall: Duration::from_secs(30),
            least_rate: 1_000,
            deadline: Duration::from_mins(5),
            lag: Duration::from_secs(1),
            files: 8,
            file_bytes: 1 << 30,
            fonts: Vec::new(),
        },
        feeds: FeedSettings::default(),
        map: MapSettings::default(),
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set; use `make test`"))
}

fn server() -> PgConnectOptions {
    PgConnectOptions::from_str(&variable("DATABASE_URL")).unwrap()
}

pub(crate) async fn connect_log() -> EventLog {
    let settings = LogSettings {
        log_prefix: PREFIX.to_owned(),
        ..LogSettings::at(variable("NATS_URL"))
    };
    let keyring = Keyring::from_master(&[7; 32]);
    EventLog::connect(&settings, keyring).await.unwrap()
}

impl TestApi {
    pub(crate) async fn open() -> Self {
        Self::open_with(settings(), None).await
    }

    /// Opens a query API whose clock shows this time.
    pub(crate) async fn open_at(time: DateTime<Utc>) -> Self {
        Self::build(settings(), None, Arc::new(ManualClock::new(time))).await
    }

    /// Opens a query API that reads from `models`, if they are not the API's own.
    pub(crate) async fn open_with(settings: QuerySettings, models: Option<PgPool>) -> Self {
        Self::build(settings, models, Arc::new(SystemClock)).await
    }

    async fn build(settings: QuerySettings, models: Option<PgPool>, clock: Arc<dyn Clock>) -> Self {
        let database = format!("q{}", &Uuid::new_v4().simple().to_string()[..12]);
        let mut admin = server().connect().await.unwrap();
        let create = AssertSqlSafe(format!("CREATE DATABASE {database}"));
        admin.execute(create).await.unwrap();
        let options = server().database(&database);
        let pool = PgPoolOptions::new().max_connections(4);
        let pool = pool.connect_with(options.clone()).await.unwrap();
        service::database::migrate(&pool).await.unwrap();
        let read_only = options.options([("default_transaction_read_only", "on")]);
        let models = models.unwrap_or_else(|| {
            let models = PgPoolOptions::new().max_connections(8);
            models.connect_lazy_with(read_only.application_name("reads"))
        });

        let log = connect_log().await;
        let shutdown = CancellationToken::new();
        let limits = LimitSettings {
            minute_requests: 100_000,
            ..LimitSettings::default()
        };
        let now = Arc::new(SystemClock);
        let access = Access::start(&log, &pool, limits, now, shutdown.clone());
        let access = access.await.unwrap();
        let router = query_api::start(Dependencies {
            access: access.clone(),
            log: log.clone(),
            pool: models,
            clock,
            settings,
            readiness: Readiness::default(),
        });
        let mut api = Self {
            router: service::edge(router),
            log,
            pool,
            org: OrgId::from(Uuid::new_v4()),
            key: String::new(),
            access,
            database,
            _until: shutdown.drop_guard(),
        };
        api.execute("INSERT INTO organizations VALUES ($1, 'Müller & Söhne', now())")
            .await;
        api.key = api.key_for(&api.org, &["admin"]).await;
        api
    }

    /// Creates an API key, and waits until it works.
    pub(crate) async fn key_for(&self, org: &OrgId, scopes: &[&str]) -> String {
        self.key_with_limit(org, scopes, 100_000).await
    }

    pub(crate) async fn key_with_limit(&self, org: &OrgId, scopes: &[&str], limit: u32) -> String {
        let key = ApiKey::generate().unwrap();
        let key_id = KeyId::from(Uuid::new_v4());
        let created = key::Created {
            key_id: key_id.clone(),
            name: "test".to_owned(),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            rate_limit: limit,
            expires_at: None,
            key_sha256: key.sha256().to_string(),
            created_by: key::Giver::Operator,
        };
        let stream = StreamId::new(org, AggregateType::Key, key_id.into_string());
        self.append(stream, Event::KeyCreated(created)).await;
        while self.access.identify(key.expose()).is_err() {
            tokio::task::yield_now().await;
        }
        key.expose().to_owned()
    }

    /// Returns the header of a request by a person, who need not have registered.
    pub(crate) fn person(&self, account: AccountId) -> (&'static str, String) {
        let id = TokenId::from(Uuid::new_v4());
        let token = self.access.make_token(account, &id, 0).access_token;
        ("authorization", format!("Bearer {token}"))
    }

    pub(crate) async fn get_by(&self, account: AccountId, path: &str) -> Answer {
        let (name, token) = self.person(account);
        self.get_with(path, &[(name, token.as_str())]).await
    }

    /// Makes a person part of the organization's staff, and returns the cookie of their session.
    pub(crate) async fn staff(&self, account: AccountId) -> String {
        let stream = StreamId::new(&self.org, AggregateType::Organization, self.org.as_str());
        let role = organization::Role::Owner;
        let added = organization::MemberAdded {
            account_id: account,
            role,
        };
        self.append(stream, Event::OrganizationMemberAdded(added))
            .await;
        while self.access.organizations_of(account).is_empty() {
            tokio::task::yield_now().await;
        }
        let id = TokenId::from(Uuid::new_v4());
        let token = self.access.make_token(account, &id, 0).access_token;
        format!("waypost_session={token}")
    }

    pub(crate) async fn append(&self, stream: StreamId, event: Event) -> Position {
        self.append_after(stream, Expected::Empty, event).await
    }

    pub(crate) async fn append_after(
        &self,
        stream: StreamId,
        expected: Expected,
        event: Event,
    ) -> Position {
        let event = NewEvent {
            id: EventId(Uuid::new_v4()),
            time: Utc::now(),
            event,
            context: Context::default(),
            receipt: None,
        };
        let write = Write {
            stream,
            expected,
            events: vec![event],
        };
        self.log.commit(Commit::from(write)).await.unwrap()
    }

    /// Counts the rows of the lists, as the projector does.
    pub(crate) async fn count_lists(&self) {
        for count in [
            "DELETE FROM totals WHERE org_id = $1",
            "INSERT INTO totals (org_id, kind, state, count)
             SELECT org_id, 'orders', '', count(*) FROM orders WHERE org_id = $1 GROUP BY 1
             UNION ALL
             SELECT org_id, 'orders', status, count(*) FROM orders WHERE org_id = $1 GROUP BY 1, 3
             UNION ALL
             SELECT org_id, 'leads', '', count(*) FROM leads WHERE org_id = $1 GROUP BY 1",
            "INSERT INTO totals (org_id, kind, parent, state, count)
             SELECT org_id, 'runs', workflow_id, state, count(*) FROM runs
             WHERE org_id = $1 GROUP BY 1, 3, 4",
        ] {
            self.execute(count).await;
        }
        let count = "SELECT count_list_blocks(), count_field_totals(), count_values_by_time()";
        self.pool.execute(count).await.unwrap();
    }

    /// Changes the read models; `$1` is the organization.
    pub(crate) async fn execute(&self, sql: &'static str) {
        let statement = sqlx::query(sql).bind(self.org.as_str());
        statement.execute(&self.pool).await.unwrap();
    }

    /// Sends a request with its own kind of key header, or with none.
    pub(crate) async fn get_as(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).unwrap();
        Answer::of(self.router.clone().oneshot(request).await.unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[]).await
    }

    /// Returns the ids of a list, following the addresses of its next pages.
    pub(crate) async fn walk(&self, first: String) -> Vec<String> {
        let (mut walked, mut next) = (Vec::new(), Some(first));
        while let Some(path) = next {
            let answer = self.get(&path).await;
            walked.extend(answer.all("id"));
            next = answer.next();
        }
        walked
    }

    /// Sends a request with more headers. One that is named here replaces the usual one.
    pub(crate) async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask("GET", path, headers).await
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        Answer::of(self.open_answer(method, path, headers).await).await
    }

    /// Returns a response whose body has yet to be read.
    pub(crate) async fn open_answer(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> axum::response::Response {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if !headers.iter().any(|(name, _)| *name == "authorization") {
            request = request.header("authorization", format!("Bearer {}", self.key));
        }
        let request = request.body(Body::empty()).unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    /// Removes what the test created on the shared server.
    pub(crate) async fn close(self) {
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.database);
        let mut admin = server().connect().await.unwrap();
        admin.execute(AssertSqlSafe(drop)).await.unwrap();
    }
}
