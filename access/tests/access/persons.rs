//! What the holder of an access token sees.

use std::sync::Arc;
use std::time::Duration;

use access::{Access, AccountToken, LimitSettings, Refusal, UncountedToken};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Request, StatusCode};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{TimeDelta, Utc};
use event_log::{CheckpointBucket, Commit, EventLog, Expected, Keyring, LogSettings, Write};
use schemas::account::{Forgotten, PasswordChanged, SignedOut, Tier, TierSet};
use schemas::{AccountId, Context, Event, EventId, NewEvent, Sealed, StreamId, TokenId};
use service::clock::ManualClock;
use service::{RequestContext, edge};
use sqlx::postgres::PgPoolOptions;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use uuid::Uuid;

use crate::support::{Database, until, window};

const MASTER: [u8; 32] = [1; 32];

struct World {
    database: Database,
    log: EventLog,
    clock: ManualClock,
    access: Access,
    router: Router,
}

async fn log(database: &Database, master: [u8; 32]) -> EventLog {
    let mut settings = LogSettings::at(std::env::var("NATS_URL").unwrap());
    settings.log_prefix = format!("{}-{}", database.name, master[0]);
    settings.fold_events = 3;
    let keyring = Keyring::from_master(&master);
    EventLog::connect(&settings, keyring).await.unwrap()
}

impl World {
    async fn new() -> Self {
        let database = Database::create().await;
        let pool = database.pool.clone();
        Self::with(database, &pool, window(3_600)).await
    }

    async fn with(database: Database, counting: &sqlx::PgPool, settings: LimitSettings) -> Self {
        let log = log(&database, MASTER).await;
        let clock = ManualClock::new(Utc::now());
        let shared = Arc::new(clock.clone());
        let shutdown = CancellationToken::new();
        let access = Access::start(&log, counting, settings, shared, shutdown).await;
        let access = access.unwrap();
        Self {
            database,
            log,
            clock,
            router: router(access.clone()),
            access,
        }
    }

    fn token(&self, account: AccountId, passwords: u32) -> String {
        self.named_token(account, passwords).0
    }

    fn named_token(&self, account: AccountId, passwords: u32) -> (String, TokenId) {
        let id = TokenId::from(Uuid::new_v4());
        let token = self.access.make_token(account, &id, passwords);
        (token.access_token, id)
    }

    async fn append(&self, account: AccountId, event: Event) {
        let stream = StreamId::of_account(account);
        let last = self.log.last(&stream).await.unwrap();
        let write = Write {
            stream,
            expected: Expected::after(last.map(|last| last.sequence)),
            events: vec![NewEvent {
                id: EventId(Uuid::new_v4()),
                time: Utc::now(),
                event,
                context: Context::default(),
                receipt: None,
            }],
        };
        let position = self.log.commit(Commit::from(write)).await.unwrap();
        until("the event taken up", async || {
            self.access.accounts_seen() >= position.sequence()
        })
        .await;
    }

    async fn get(&self, path: &str, token: &str) -> (StatusCode, HeaderMap, String) {
        let mut request = Request::get(path);
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Body::empty()).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let body = to_bytes(response.into_body(), 1 << 16).await.unwrap();
        (status, headers, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn status(&self, token: &str) -> StatusCode {
        self.get("/sos", token).await.0
    }
}

fn router(access: Access) -> Router {
    let router = Router::new()
        .route(
            "/me",
            get(async |person: AccountToken| person.account_id.to_string()),
        )
        .route(
            "/sos",
            get(async |_: UncountedToken| StatusCode::NO_CONTENT),
        )
        .route("/positions/{count}", get(count_positions))
        .with_state(access);
    edge(router)
}

async fn count_positions(
    person: UncountedToken,
    State(access): State<Access>,
    request: RequestContext,
    Path(count): Path<u32>,
) -> Result<StatusCode, Refusal> {
    access.count_positions(&person, count, &request).await?;
    Ok(StatusCode::ACCEPTED)
}

fn account() -> AccountId {
    AccountId(Uuid::new_v4().as_u64_pair().0 >> 12)
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers[name].to_str().unwrap()
}

#[tokio::test]
async fn a_token_says_who_asks_and_is_counted_under_its_accounts_tier() {
    let world = World::new().await;
    let account = account();
    let token = world.token(account, 0);
    let (status, headers, body) = world.get("/me", &token).await;
    assert_eq!((status, body), (StatusCode::OK, account.to_string()));
    let policy = header(&headers, "ratelimit-policy");
    assert_eq!(policy, "\"requests\";q=100;w=3600");
    assert!(header(&headers, "ratelimit").starts_with("\"requests\";r=99;t="));
    let other = world.token(account, 0);
    for _ in 1..100 {
        assert_eq!(world.get("/me", &other).await.0, StatusCode::OK);
    }
    let (status, headers, body) = world.get("/me", &token).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{body}");
    let retry: u64 = header(&headers, "retry-after").parse().unwrap();
    assert!((3_500..=3_601).contains(&retry), "{retry}");
    assert_eq!(world.status(&token).await, StatusCode::NO_CONTENT);

    let raised = Event::AccountTierSet(TierSet {
        account_id: account,
        tier: Tier::Enterprise,
        requests: Some(101),
        locations: None,
    });
    world.append(account, raised).await;
    assert_eq!(world.get("/me", &token).await.0, StatusCode::OK);
    let over = world.get("/me", &token).await.0;
    assert_eq!(over, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(world.access.allowances(account).locations, 100_000);
    world.database.drop().await;
}

#[tokio::test]
async fn positions_are_counted_as_many_as_they_are_or_not_at_all() {
    let world = World::new().await;
    let token = world.token(account(), 0);
    let (status, headers, _) = world.get("/positions/25", &token).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let policy = header(&headers, "ratelimit-policy");
    assert_eq!(policy, "\"locations\";q=30;w=3600");
    assert!(header(&headers, "ratelimit").starts_with("\"locations\";r=5;t="));
    let (status, headers, body) = world.get("/positions/6", &token).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    assert!(body.contains("locations"), "{body}");
    assert!(header(&headers, "ratelimit").starts_with("\"locations\";r=5;t="));
    assert_eq!(
        world.get("/positions/5", &token).await.0,
        StatusCode::ACCEPTED
    );
    world.database.drop().await;
}

#[tokio::test]
async fn a_process_that_starts_from_the_checkpoint_has_the_same_state() {
    let world = World::new().await;
    let (account, other) = (account(), account());
    let (old, good) = (world.token(account, 0), world.token(other, 0));
    let (ended, id) = world.named_token(other, 0);
    let changed = PasswordChanged {
        account_id: account,
        password_hash: Sealed::from_ciphertext("v1.".to_owned()),
    };
    world
        .append(account, Event::AccountPasswordChanged(changed))
        .await;
    let signed_out = SignedOut {
        account_id: other,
        token_id: id,
        expires_at: Utc::now() + TimeDelta::hours(1),
    };
    world
        .append(other, Event::AccountSignedOut(signed_out))
        .await;
    let raised = TierSet {
        account_id: other,
        tier: Tier::Family,
        requests: None,
        locations: None,
    };
    world.append(other, Event::AccountTierSet(raised)).await;
    let name = CheckpointBucket::Folds.name();
    let bucket = world.log.existing_bucket(name).await.unwrap().unwrap();
    until("the accounts noted", async || {
        bucket.get("accounts").await.unwrap().is_some()
    })
    .await;

    let (log, pool) = (&world.log, &world.database.pool);
    let (clock, shutdown) = (Arc::new(world.clock.clone()), CancellationToken::new());
    let next = Access::start(log, pool, window(3_600), clock, shutdown).await;
    let next = next.unwrap();
    assert_eq!(next.accounts_seen(), world.access.accounts_seen());
    for (token, is_good) in [(old, false), (ended, false), (good, true)] {
        assert_eq!(next.authenticate_person(&token).is_ok(), is_good);
    }
    assert_eq!(next.allowances(other).requests, 1_000);
    world.database.drop().await;
}

fn part(json: &str) -> String {
    URL_SAFE_NO_PAD.encode(json)
}

#[tokio::test]
async fn what_was_not_signed_here_with_our_algorithm_is_401() {
    let world = World::new().await;
    let token = world.token(account(), 0);
    assert_eq!(world.status(&token).await, StatusCode::NO_CONTENT);
    let [header, claims, signature] =
        <[_; 3]>::try_from(token.split('.').collect::<Vec<_>>()).expect("a token has three parts");
    let elsewhere = log(&world.database, [2; 32]).await;
    let settings = window(3_600);
    let clock = Arc::new(world.clock.clone());
    let shutdown = CancellationToken::new();
    let pool = &world.database.pool;
    let elsewhere = Access::start(&elsewhere, pool, settings, clock, shutdown);
    let elsewhere = elsewhere.await.unwrap();
    let foreign = elsewhere.make_token(account(), &TokenId::from("x"), 0);
    let mut flipped = signature.to_owned();
    let first = if flipped.starts_with('A') { "B" } else { "A" };
    flipped.replace_range(..1, first);
    let none = part(r#"{"typ":"JWT","alg":"none"}"#);
    let hs512 = part(r#"{"typ":"JWT","alg":"HS512"}"#);
    let rs256 = part(r#"{"typ":"JWT","alg":"RS256"}"#);
    let other_claims = part(r#"{"sub":"1","jti":"x","iat":1,"exp":9999999999,"pw":0}"#);
    for wrong in [
        String::new(),
        "x".to_owned(),
        "wp_0123456789012345678901234567890123456789abcdef".to_owned(),
        foreign.access_token,
        format!("{none}.{claims}."),
        format!("{none}.{claims}"),
        format!("{none}.{claims}.{signature}"),
        format!("{hs512}.{claims}.{signature}"),
        format!("{rs256}.{claims}.{signature}"),
        format!("{header}.{claims}.{flipped}"),
        format!("{header}.{claims}."),
        format!("{header}.{other_claims}.{signature}"),
    ] {
        let (status, headers, body) = world.get("/me", &wrong).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{wrong}: {body}");
        assert_eq!(headers["www-authenticate"], "Bearer");
        assert!(!headers.contains_key("ratelimit"));
    }
    world.database.drop().await;
}

#[tokio::test]
async fn a_token_ends_with_its_time_its_sign_out_its_password_and_its_account() {
    let world = World::new().await;
    let account = account();
    let [first, second] = [0, 0].map(|passwords| world.token(account, passwords));
    let person = world.access.authenticate_person(&first).unwrap();
    world
        .append(
            account,
            Event::AccountSignedOut(SignedOut {
                account_id: account,
                token_id: person.token_id.clone(),
                expires_at: person.expires_at,
            }),
        )
        .await;
    assert!(!world.access.person_is_good(&person));
    assert_eq!(world.status(&first).await, StatusCode::UNAUTHORIZED);
    assert_eq!(world.status(&second).await, StatusCode::NO_CONTENT);

    let changed = Event::AccountPasswordChanged(PasswordChanged {
        account_id: account,
        password_hash: Sealed::from_ciphertext(String::new()),
    });
    // The token issued with a change may be used before the change is known here.
    let third = world.token(account, 1);
    assert_eq!(world.status(&third).await, StatusCode::NO_CONTENT);
    world.append(account, changed).await;
    assert_eq!(world.status(&second).await, StatusCode::UNAUTHORIZED);
    assert_eq!(world.status(&third).await, StatusCode::NO_CONTENT);

    world.clock.advance(Duration::from_secs(3_598));
    assert_eq!(world.status(&third).await, StatusCode::NO_CONTENT);
    world.clock.advance(Duration::from_secs(2));
    assert_eq!(world.status(&third).await, StatusCode::UNAUTHORIZED);

    let fourth = world.token(account, 1);
    let person = world.access.authenticate_person(&fourth).unwrap();
    assert!(person.expires_at - service::Clock::now(&world.clock) <= TimeDelta::hours(1));
    let forgotten = Event::AccountForgotten(Forgotten {
        account_id: account,
    });
    world.append(account, forgotten).await;
    assert_eq!(world.status(&fourth).await, StatusCode::UNAUTHORIZED);
    world.database.drop().await;
}

#[tokio::test]
async fn tokens_are_good_and_counted_while_postgres_is_away() {
    let database = Database::create().await;
    let away = PgPoolOptions::new()
        .connect_lazy("postgres://nobody@127.0.0.1:1/nothing")
        .unwrap();
    let world = World::with(database, &away, LimitSettings::default()).await;
    let token = world.token(account(), 0);
    let (status, headers, _) = world.get("/me", &token).await;
    assert_eq!(status, StatusCode::OK);
    assert!(header(&headers, "ratelimit").starts_with("\"requests\";r=99;t="));
    let (_, headers, _) = world.get("/me", &token).await;
    assert!(header(&headers, "ratelimit").starts_with("\"requests\";r=98;t="));
    world.database.drop().await;
}
