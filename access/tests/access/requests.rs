//! What a client of a protected route sees.

use std::sync::Arc;
use std::time::Duration;

use access::{Access, ApiKey, Authorized, LimitSettings, scope};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Path;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use axum::routing::{get, post};
use chrono::Utc;
use event_log::{Commit, EventLog, Expected, Keyring, LogSettings, Write};
use schemas::{AggregateType, Context, Event, EventId, KeyId, NewEvent, OrgId, StreamId, key};
use serde_json::Value;
use service::clock::ManualClock;
use service::{HttpError, edge};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use uuid::Uuid;

use crate::support::{Database, until, window};

struct World {
    database: Database,
    log: EventLog,
    clock: ManualClock,
    router: Router,
}

struct Key {
    stream: StreamId,
    id: KeyId,
    text: String,
}

#[derive(Default)]
struct Terms<'a> {
    scopes: &'a [&'a str],
    rate_limit: u32,
    lives: Option<Duration>,
}

impl World {
    async fn new() -> Self {
        Self::with(window(3_600)).await
    }

    async fn with(settings: LimitSettings) -> Self {
        let database = Database::create().await;
        let mut log_settings = LogSettings::at(std::env::var("NATS_URL").unwrap());
        log_settings.log_prefix.clone_from(&database.name);
        let keyring = Keyring::from_master(&[1; 32]);
        let log = EventLog::connect(&log_settings, keyring).await.unwrap();
        let clock = ManualClock::new(Utc::now());
        let shutdown = CancellationToken::new();
        let shared_clock = Arc::new(clock.clone());
        let access = Access::start(&log, &database.pool, settings, shared_clock, shutdown);
        let router = router(access.await.unwrap());
        Self {
            database,
            log,
            clock,
            router,
        }
    }

    async fn key(&self, terms: Terms<'_>) -> Key {
        let made = ApiKey::generate().unwrap();
        let org = OrgId::from(Uuid::new_v4());
        let id = KeyId::from(Uuid::new_v4());
        let key = Key {
            stream: StreamId::new(&org, AggregateType::Key, id.as_str()),
            id: id.clone(),
            text: made.expose().to_owned(),
        };
        let created = Event::KeyCreated(key::Created {
            key_id: id,
            name: "of a test".to_owned(),
            scopes: terms.scopes.iter().map(ToString::to_string).collect(),
            rate_limit: terms.rate_limit,
            expires_at: terms.lives.map(|lives| self.now() + lives),
            key_sha256: made.sha256().to_string(),
            created_by: key::Giver::Operator,
        });
        self.append(&key, Expected::Empty, created).await;
        // Unknown paths count nothing, so a probe of the key's validity must not count either.
        until("the key in force", async || {
            self.send(Method::GET, "/valid", &key).await.0 == StatusCode::NO_CONTENT
        })
        .await;
        key
    }

    async fn revoke(&self, key: &Key) {
        let past = self.log.last(&key.stream).await.unwrap().unwrap();
        let revoked = Event::KeyRevoked(key::Revoked {
            key_id: key.id.clone(),
        });
        self.append(key, Expected::At(past.sequence), revoked).await;
    }

    async fn append(&self, key: &Key, expected: Expected, event: Event) {
        let event = NewEvent {
            id: EventId(Uuid::new_v4()),
            time: Utc::now(),
            event,
            context: Context::default(),
            receipt: None,
        };
        let write = Write {
            stream: key.stream.clone(),
            expected,
            events: vec![event],
        };
        self.log.commit(Commit::from(write)).await.unwrap();
    }

    fn now(&self) -> chrono::DateTime<Utc> {
        service::Clock::now(&self.clock)
    }

    async fn send(&self, method: Method, path: &str, key: &Key) -> (StatusCode, HeaderMap, String) {
        self.send_with(
            method,
            path,
            "authorization",
            &format!("Bearer {}", key.text),
        )
        .await
    }

    async fn send_with(
        &self,
        method: Method,
        path: &str,
        header: &str,
        value: &str,
    ) -> (StatusCode, HeaderMap, String) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header, value);
        let request = request.body(Body::empty()).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        let body = String::from_utf8(body.to_vec()).unwrap();
        if !parts.status.is_success() {
            let error: Value = serde_json::from_str(&body).unwrap();
            assert!(error["error"].is_string(), "{body}");
        }
        (parts.status, parts.headers, body)
    }
}

fn router(access: Access) -> Router {
    let valid = |headers: HeaderMap, state: axum::extract::State<Access>| async move {
        let key = headers["authorization"]
            .to_str()
            .unwrap()
            .replace("Bearer ", "");
        match state.identify(&key) {
            Ok(_) => StatusCode::NO_CONTENT,
            Err(_) => StatusCode::ACCEPTED,
        }
    };
    let trigger = |caller: Authorized<scope::TriggerWorkflow>, Path(id): Path<u32>| async move {
        match id {
            0 => Err(HttpError::not_found("no such workflow")),
            _ => Ok(caller.org.to_string()),
        }
    };
    let orders = |_: Authorized<scope::ReadOrders>| async { "[]" };
    edge(
        Router::new()
            .route("/valid", get(valid))
            .route("/workflows/{id}/trigger", post(trigger))
            .route("/orders", get(orders))
            .with_state(access),
    )
}

#[tokio::test]
async fn every_answer_under_a_limit_states_the_limit_and_what_remains_of_it() {
    let world = World::new().await;
    let key = world
        .key(Terms {
            scopes: &["workflows:trigger"],
            rate_limit: 6,
            lives: None,
        })
        .await;
    let statuses = [
        ("/workflows/1/trigger", StatusCode::OK),
        ("/workflows/0/trigger", StatusCode::NOT_FOUND),
        ("/workflows/x/trigger", StatusCode::BAD_REQUEST),
    ];
    for (left, (path, expected)) in (3..6).rev().zip(statuses) {
        let (status, headers, _) = world.send(Method::POST, path, &key).await;
        assert_eq!(status, expected);
        assert_eq!(headers["ratelimit-policy"], "\"hourly\";q=6;w=3600");
        let prefix = format!("\"hourly\";r={left};t=");
        let limit = headers["ratelimit"].to_str().unwrap();
        let reset: u32 = limit.strip_prefix(&prefix).unwrap().parse().unwrap();
        assert!((3_590..=3_600).contains(&reset), "{limit}");
        assert!(!headers.contains_key("retry-after"));
    }
    for left in [2, 1, 0] {
        let (status, headers, body) = world.send(Method::POST, "/workflows/1/trigger", &key).await;
        assert_eq!((status, body), (StatusCode::OK, key.stream.org.to_string()));
        assert!(
            headers["ratelimit"]
                .to_str()
                .unwrap()
                .contains(&format!(";r={left};"))
        );
    }
    let (status, headers, _) = world.send(Method::POST, "/workflows/x/trigger", &key).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    let retry_after: u32 = headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((3_590..=3_601).contains(&retry_after));
    assert!(
        headers["ratelimit"]
            .to_str()
            .unwrap()
            .starts_with("\"hourly\";r=0;t=")
    );
    assert_eq!(headers["ratelimit-policy"], "\"hourly\";q=6;w=3600");
    world.database.drop().await;
}

#[tokio::test]
async fn the_key_is_checked_before_the_limit_and_the_limit_before_the_scope() {
    let world = World::new().await;
    let key = world
        .key(Terms {
            scopes: &["records:write"],
            rate_limit: 1,
            lives: None,
        })
        .await;
    let fake = format!("Bearer {}x", &key.text[..key.text.len() - 1]);
    let never_made = format!("Bearer {}", ApiKey::generate().unwrap().expose());
    let with = [
        ("authorization", fake.as_str()),
        ("authorization", &never_made),
        ("x-other", "1"),
    ];
    for (header, value) in with {
        let path = "/workflows/x/trigger";
        let (status, headers, _) = world.send_with(Method::POST, path, header, value).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        assert_eq!(headers["www-authenticate"], "Bearer");
        assert!(!headers.contains_key("ratelimit"));
    }
    let (status, headers, body) = world.send(Method::POST, "/workflows/x/trigger", &key).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(body.contains("workflows:trigger"), "{body}");
    assert!(
        headers["ratelimit"]
            .to_str()
            .unwrap()
            .starts_with("\"hourly\";r=0;")
    );
    let (status, ..) = world.send(Method::POST, "/workflows/x/trigger", &key).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "the 403 was counted");
    world.database.drop().await;
}

#[tokio::test]
async fn admin_passes_and_unknown_paths_count_nothing() {
    let world = World::new().await;
    let key = world
        .key(Terms {
            scopes: &["admin"],
            rate_limit: 2,
            lives: None,
        })
        .await;
    for _ in 0..5 {
        let (status, headers, _) = world.send(Method::POST, "/nowhere", &key).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert!(!headers.contains_key("ratelimit"));
    }
    let (status, ..) = world.send(Method::POST, "/workflows/1/trigger", &key).await;
    assert_eq!(status, StatusCode::OK);
    world.database.drop().await;
}

#[tokio::test]
async fn the_business_data_api_has_its_own_window_and_header() {
    let mut settings = window(3_600);
    (settings.minute, settings.minute_requests) = (100_000, 2);
    let world = World::with(settings).await;
    let key = world
        .key(Terms {
            scopes: &["read:orders", "workflows:trigger"],
            rate_limit: 1,
            lives: None,
        })
        .await;
    for expected in [
        StatusCode::OK,
        StatusCode::OK,
        StatusCode::TOO_MANY_REQUESTS,
    ] {
        let sent = world.send_with(Method::GET, "/orders", "x-api-key", &key.text);
        let (status, headers, _) = sent.await;
        assert_eq!(status, expected);
        assert_eq!(headers["ratelimit-policy"], "\"minute\";q=2;w=100000");
    }
    let elsewhere = world.send_with(Method::POST, "/workflows/1/trigger", "x-api-key", &key.text);
    assert_eq!(elsewhere.await.0, StatusCode::UNAUTHORIZED);
    let (status, ..) = world.send(Method::POST, "/workflows/1/trigger", &key).await;
    assert_eq!(status, StatusCode::OK, "the hour's limit is another one");
    world.database.drop().await;
}

#[tokio::test]
async fn a_revoked_key_stops_working_within_a_second() {
    let world = World::new().await;
    let key = world
        .key(Terms {
            scopes: &["admin"],
            rate_limit: 1_000,
            lives: None,
        })
        .await;
    world.revoke(&key).await;
    let revoked = tokio::time::Instant::now();
    until("the key refused", async || {
        world
            .send(Method::POST, "/workflows/1/trigger", &key)
            .await
            .0
            == StatusCode::UNAUTHORIZED
    })
    .await;
    assert!(revoked.elapsed() < Duration::from_secs(1));
    world.database.drop().await;
}

#[tokio::test]
async fn a_key_expires_at_its_time() {
    let world = World::new().await;
    let lives = Some(Duration::from_mins(1));
    let key = world
        .key(Terms {
            scopes: &["admin"],
            rate_limit: 1_000,
            lives,
        })
        .await;
    let (status, ..) = world.send(Method::POST, "/workflows/1/trigger", &key).await;
    assert_eq!(status, StatusCode::OK);
    world.clock.advance(Duration::from_mins(1));
    let (status, ..) = world.send(Method::POST, "/workflows/1/trigger", &key).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    world.database.drop().await;
}
