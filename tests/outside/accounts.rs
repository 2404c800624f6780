//! Persons' accounts: opening one and signing in.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use futures::future::join_all;
use harness::{Answer, Client, System};
use serde_json::{Value, json};

use super::throttles::{PROXIED, sign_in};
use crate::{SHAPE, system};

pub(super) const PASSWORD: &str = "correct horse";

/// Creates a unique e-mail address.
pub(super) fn email() -> String {
    format!("p{}@persons.example", uuid::Uuid::new_v4().simple())
}

/// Creates a unique phone number.
pub(super) fn phone() -> String {
    format!(
        "+49{:012}",
        uuid::Uuid::new_v4().as_u128() % 1_000_000_000_000
    )
}

pub(super) fn registration(email: &str) -> Value {
    json!({"name": "Ada Lovelace", "email": email, "password": PASSWORD})
}

pub(super) async fn register(client: &Client, body: &Value) -> Answer {
    client.post("/auth/register", body).await
}

pub(super) async fn login(client: &Client, email: &str, password: &str) -> Answer {
    let body = json!({"email": email, "password": password});
    client.post("/auth/login", &body).await
}

pub(super) fn token(session: &Value) -> String {
    session["access_token"]
        .as_str()
        .expect("a token")
        .to_owned()
}

/// A call that any valid token may make, and that changes nothing.
pub(super) async fn status_with(client: &Client, token: &str) -> u16 {
    client.with_key(token).get("/circles").await.status.as_u16()
}

#[tokio::test]
async fn who_registers_is_signed_in() {
    let client = system().await.client();
    let email = email();
    let answer = register(&client, &registration(&email)).await;
    let session = answer.ok(201);
    assert_eq!(session["token_type"], "bearer");
    assert_eq!(session["expires_in"], 3_600);
    let user = session["user"].as_object().unwrap();
    assert_eq!(user.keys().collect::<Vec<_>>(), ["id", "name", "email"]);
    assert_eq!(user["name"], "Ada Lovelace");
    assert_eq!(user["email"], email);
    let id = user["id"].as_u64().unwrap();
    assert!((1..1 << 53).contains(&id), "{id}");
    assert_eq!(status_with(&client, &token(&session)).await, 200);
    assert_eq!(answer.header("cache-control"), Some("no-store"));

    let again = login(&client, &email.to_uppercase(), PASSWORD)
        .await
        .ok(200);
    assert_eq!(again["user"], session["user"]);
    assert_eq!(again["token_type"], "bearer");
    assert_eq!(again["expires_in"], 3_600);
    assert_ne!(again["access_token"], session["access_token"]);
    assert_eq!(again.as_object().unwrap().len(), 4);
}

#[tokio::test]
async fn a_taken_address_and_a_wrong_registration_are_refused() {
    let client = system().await.client();
    let email = email();
    register(&client, &registration(&email)).await.ok(201);
    let taken =
        json!({"name": "Other", "email": email.to_uppercase(), "password": "another password"});
    register(&client, &taken).await.error(409);
    for (field, value) in [
        ("email", json!("nobody")),
        ("email", json!(7)),
        ("email", Value::Null),
        ("password", json!("1234567")),
        ("password", Value::Null),
        ("name", json!(" ")),
        ("name", Value::Null),
        ("phone", json!("0151 1234567")),
        ("phone", json!(4_915_112_345_678_u64)),
    ] {
        let mut body = registration(&self::email());
        body[field] = value;
        let message = register(&client, &body).await.error(400);
        assert!(message.contains(field), "{field}: {message}");
    }
    client.post("/auth/register", &json!([])).await.error(400);
    client
        .post_bytes("/auth/register", "application/json", "{")
        .await
        .error(400);
    client
        .post_bytes("/auth/register", "text/plain", "{}")
        .await
        .error(415);
    let wrong_method = client.get("/auth/register").await;
    wrong_method.error(405);
}

#[tokio::test]
async fn twenty_registrations_at_once_open_one_account() {
    let client = system().await.client();
    let body = registration(&email());
    let answers = join_all((0..20).map(|_| register(&client, &body))).await;
    let opened = answers.iter().filter(|answer| answer.status == 201).count();
    let refused = answers.iter().filter(|answer| answer.status == 409).count();
    assert_eq!((opened, refused), (1, 19));
}

#[tokio::test]
async fn a_registration_sent_again_under_its_key_finds_its_account() {
    let client = system().await.client();
    let (email, key) = (email(), uuid::Uuid::new_v4().to_string());
    let body = registration(&email);
    let send = async |body: &Value| client.post_once("/auth/register", &key, body).await;
    let answers = join_all((0..5).map(|_| send(&body))).await;
    let users: HashSet<String> = answers
        .iter()
        .map(|answer| answer.ok(201)["user"].to_string())
        .collect();
    assert_eq!(users.len(), 1, "{users:?}");
    let token = token(&answers[4].json());
    assert_eq!(status_with(&client, &token).await, 200);
    let mut other = body.clone();
    other["password"] = json!("not the password");
    send(&other).await.error(409);
    other = registration(&self::email());
    send(&other).await.error(409);
}

#[tokio::test]
async fn a_wrong_password_and_an_unknown_address_look_alike() {
    // Separate limits, since failures from one address are counted.
    let generous = [
        PROXIED,
        ("WAYPOST_SIGN_IN_PER_ADDRESS", "100000"),
        ("WAYPOST_SIGN_IN_PER_ACCOUNT", "100000"),
    ];
    let system = System::start(SHAPE, &generous).await;
    let client = system.client();
    let known = email();
    register(&client, &registration(&known)).await.ok(201);
    // From an address where a person has signed in before, they queue with known clients.
    let guess = async |email: &str| sign_in(&client, "192.0.2.1", email, "wrong password").await;
    guess(&email()).await.error(401);
    let mut times: [Vec<Duration>; 2] = [Vec::new(), Vec::new()];
    let mut answers: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for _ in 0..15 {
        for (nth, email) in [known.clone(), email()].iter().enumerate() {
            let start = Instant::now();
            let answer = guess(email).await;
            times[nth].push(start.elapsed());
            let headers = answer.headers.iter();
            let headers =
                headers.filter(|(name, _)| !["traceparent", "date"].contains(&name.as_str()));
            let headers =
                headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
            answers.push((answer.error(401), headers.collect()));
        }
    }
    assert!(
        answers.windows(2).all(|two| two[0] == two[1]),
        "{answers:?}"
    );
    let [known, unknown] = times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64()
    });
    let ratio = known / unknown;
    assert!((0.5..2.0).contains(&ratio), "{known} s and {unknown} s");
    for odd in [json!("no address"), json!("")] {
        let body = json!({"email": odd, "password": "wrong password"});
        client.post("/auth/login", &body).await.error(401);
    }
    let body = json!({"email": "a@b.example"});
    assert!(
        client
            .post("/auth/login", &body)
            .await
            .error(400)
            .contains("password")
    );
    let long = login(&client, &email(), &"x".repeat(10_000)).await;
    long.error(401);
}

#[tokio::test]
async fn guessing_is_slowed_for_an_account_and_for_an_address() {
    let strict = [
        ("WAYPOST_SIGN_IN_PER_ADDRESS", "7"),
        ("WAYPOST_SIGN_IN_PER_ACCOUNT", "3"),
        ("WAYPOST_SIGN_IN_SECONDS", "600"),
        PROXIED,
    ];
    let system = System::start(SHAPE, &strict).await;
    let client = system.client();
    let known = email();
    register(&client, &registration(&known)).await.ok(201);
    let from = async |address: &str, email: &str, password: &str| {
        sign_in(&client, address, email, password).await
    };
    // Success does not count.
    for _ in 0..5 {
        from("192.0.2.1", &known, PASSWORD).await.ok(200);
    }
    for _ in 0..3 {
        from("192.0.2.1", &known, "wrong password").await.error(401);
    }
    let slowed = from("192.0.2.2", &known, PASSWORD).await;
    slowed.error(429);
    let wait: u64 = slowed.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=201).contains(&wait), "{wait}");
    for _ in 0..4 {
        from("192.0.2.1", &email(), "wrong password")
            .await
            .error(401);
    }
    from("192.0.2.1", &email(), "wrong password")
        .await
        .error(429);
    from("192.0.2.3", &email(), "wrong password")
        .await
        .error(401);
}
