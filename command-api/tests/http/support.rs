//! One whole command API on the real log, for one organization of its own.

use std::sync::Arc;
use std::time::Duration;

use access::{Access, LimitSettings};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::Response;
use command_api::accounts::AccountSettings;
use command_api::{CommandSettings, Commands, Dependencies, Origin, keys};
use domain::key::Request as KeyRequest;
use event_log::{EventLog, Keyring, LogSettings};
use futures::StreamExt as _;
use schemas::{AggregateType, OrgId, Recorded, StreamId};
use serde_json::Value;
use service::SystemClock;
use service::health::Readiness;
use service::settings::OpenRunSettings;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

pub(crate) const PREFIX: &str = "commandtests";
const DATABASE: &str = "command_api_tests";

pub(crate) struct TestApi {
    router: Router,
    pub(crate) access: Access,
    pub(crate) commands: Commands,
    pub(crate) org: OrgId,
    pub(crate) key: String,
    _until: tokio_util::sync::DropGuard,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    pub(crate) fn text(&self, field: &str) -> String {
        let value = self.json();
        let text = value[field].as_str();
        text.unwrap_or_else(|| panic!("no {field} in {}", self.body))
            .to_owned()
    }

    pub(crate) fn error(&self) -> String {
        self.text("error")
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        let lines = self.body.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let value = self.headers.get(name);
        value.map(|value| value.to_str().unwrap())
    }

    pub(crate) fn position(&self) -> Option<&str> {
        self.header("waypost-position")
    }
}

/// A response that is still arriving; each piece must be one line.
pub(crate) struct AnswerStream(axum::body::BodyDataStream);

impl AnswerStream {
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            let piece = self.0.next().await?.unwrap();
            if !piece.is_empty() {
                return Some(serde_json::from_slice(&piece).unwrap());
            }
        }
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set; use `make test`"))
}

pub(crate) async fn connect_log() -> EventLog {
    let settings = LogSettings {
        log_prefix: PREFIX.to_owned(),
        ..LogSettings::at(variable("NATS_URL"))
    };
    EventLog::connect(&settings, Keyring::from_master(&[7; 32]))
        .await
        .unwrap()
}

/// The database of these tests, created on first use. Its limits are kept by key, so concurrent
/// tests do not interfere.
async fn connect_database() -> PgPool {
    let given = variable("DATABASE_URL");
    let admin = PgPool::connect(&given).await.unwrap();
    // It exists already, or another test is creating it right now.
    let _ = sqlx::query(sqlx::AssertSqlSafe(format!("CREATE DATABASE {DATABASE}")))
        .execute(&admin)
        .await;
    let mut url = url::Url::parse(&given).unwrap();
    url.set_path(DATABASE);
    let pool = PgPool::connect(url.as_str()).await.unwrap();
    service::database::migrate(&pool).await.unwrap();
    pool
}

impl TestApi {
    pub(crate) async fn open() -> Self {
        Self::with_receipts_lasting(Duration::from_hours(24)).await
    }

    pub(crate) async fn with_receipts_lasting(receipts: Duration) -> Self {
        Self::with(receipts, LimitSettings::default()).await
    }

    pub(crate) async fn with_limits(limits: LimitSettings) -> Self {
        Self::with(Duration::from_hours(24), limits).await
    }

    async fn with(receipts: Duration, limits: LimitSettings) -> Self {
        let (log, pool) = (connect_log().await, connect_database().await);
        let shutdown = CancellationToken::new();
        let clock = Arc::new(SystemClock);
        let access = Access::start(&log, &pool, limits, clock.clone(), shutdown.clone());
        let access = access.await.unwrap();
        let commands = Commands::new(log.clone());
        let dependencies = Dependencies {
            log,
            access: access.clone(),
            pool,
            clock,
            settings: CommandSettings {
                idempotency: receipts,
                ..CommandSettings::default()
            },
            accounts: AccountSettings::default(),
            open_runs: OpenRunSettings {
                per_organization: u32::MAX,
            },
            open_targets: domain::target::Ranges::default(),
            home: std::env::temp_dir(),
            readiness: Readiness::default(),
        };
        let started = Box::pin(command_api::start(dependencies, shutdown.clone()));
        let router = started.await.unwrap();
        let org = OrgId::from(uuid::Uuid::new_v4());
        let mut api = Self {
            router: service::edge(router),
            access,
            commands,
            org,
            key: String::new(),
            _until: shutdown.drop_guard(),
        };
        api.key = api.key_with(&["admin"]).await;
        while api.access.identify(&api.key).is_err() {
            tokio::task::yield_now().await;
        }
        api
    }

    /// Creates a key with these scopes, as the operator does.
    pub(crate) async fn key_with(&self, scopes: &[&str]) -> String {
        let request = KeyRequest {
            name: "test".to_owned(),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            rate_limit: Some(100_000),
            expires_at: None,
        };
        let (origin, giver) = (Origin::default(), keys::Giver::Operator);
        let made = keys::create(&self.commands, &origin, &self.org, giver, request).await;
        made.unwrap().answer.key
    }

    pub(crate) async fn ask(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, 64 << 20).await.unwrap();
        Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    /// Sends a request with the API's own key and a JSON body.
    pub(crate) async fn send(&self, method: &str, path: &str, body: impl Into<Body>) -> Answer {
        self.send_with(method, path, &[], body).await
    }

    /// The same with more headers; one that is named here overrides the usual one.
    pub(crate) async fn send_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let given = |name: &str| headers.iter().any(|(given, _)| *given == name);
        if !given("authorization") {
            request = request.header("authorization", format!("Bearer {}", self.key));
        }
        if !given("content-type") {
            request = request.header("content-type", "application/json");
        }
        self.ask(request.body(body.into()).unwrap()).await
    }

    /// Sends a request and returns the response as it begins.
    pub(crate) async fn open_response(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: Body,
    ) -> Response {
        let key = format!("Bearer {}", self.key);
        let mut request = Request::post(path).header("authorization", key);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        response
    }

    /// Sends a request and reads the response line by line, as it arrives.
    pub(crate) async fn open_stream(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: Body,
    ) -> AnswerStream {
        let response = self.open_response(path, headers, body).await;
        AnswerStream(response.into_body().into_data_stream())
    }

    /// All events of an aggregate of this organization.
    pub(crate) async fn events(&self, kind: AggregateType, id: &str) -> Vec<Recorded> {
        let stream = StreamId::new(&self.org, kind, id);
        self.commands.log().load(&stream).await.unwrap()
    }

    /// Saves a workflow with a TRIGGER step.
    pub(crate) async fn put_workflow(&self, id: &str, status: &str) {
        let body = serde_json::json!({
            "name": "W", "status": status, "steps": [{"id": "start", "type": "TRIGGER"}]
        });
        let answer = self
            .send("PUT", &format!("/api/v1/workflows/{id}"), body.to_string())
            .await;
        assert_eq!(answer.status, StatusCode::OK.as_u16(), "{}", answer.body);
    }
}
