//! Persons' accounts: opening one, signing in and out, another password.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use futures::future::join_all;
use harness::{Answer, Client, System, eventually};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{SHAPE, system};

pub(super) const PASSWORD: &str = "correct horse";

/// An e-mail address of a test's own.
pub(super) fn email() -> String {
    format!("p{}@persons.example", uuid::Uuid::new_v4().simple())
}

/// A phone number of a test's own.
pub(super) fn phone() -> String {
    format!(
        "+49{:012}",
        uuid::Uuid::new_v4().as_u128() % 1_000_000_000_000
    )
}

fn registration(email: &str) -> Value {
    json!({"name": "Ada Lovelace", "email": email, "password": PASSWORD})
}

async fn register(client: &Client, body: &Value) -> Answer {
    client.post("/auth/register", body).await
}

async fn login(client: &Client, email: &str, password: &str) -> Answer {
    let body = json!({"email": email, "password": password});
    client.post("/auth/login", &body).await
}

fn token(session: &Value) -> String {
    session["access_token"]
        .as_str()
        .expect("a token")
        .to_owned()
}

/// A call that any token in force may make, and that changes nothing.
async fn status_with(client: &Client, token: &str) -> u16 {
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
    // Limits of their own: failures from one address are counted.
    let generous = [
        ("WAYPOST_SIGN_IN_PER_ADDRESS", "100000"),
        ("WAYPOST_SIGN_IN_PER_ACCOUNT", "100000"),
    ];
    let system = System::start(SHAPE, &generous).await;
    let client = system.client();
    let known = email();
    register(&client, &registration(&known)).await.ok(201);
    login(&client, &email(), "warms up").await.error(401);
    let mut times: [Vec<Duration>; 2] = [Vec::new(), Vec::new()];
    let mut answers: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for _ in 0..15 {
        for (nth, email) in [known.clone(), email()].iter().enumerate() {
            let start = Instant::now();
            let answer = login(&client, email, "wrong password").await;
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
        ("WAYPOST_TRUSTED_PROXIES", "127.0.0.1"),
    ];
    let system = System::start(SHAPE, &strict).await;
    let client = system.client();
    let known = email();
    register(&client, &registration(&known)).await.ok(201);
    let from = async |address: &str, email: &str, password: &str| {
        let body = json!({"email": email, "password": password});
        let request = client.request(Method::POST, "/auth/login");
        let request = request.header("x-forwarded-for", address);
        let request = request.header("content-type", "application/json");
        Answer::to(request.body(body.to_string())).await
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

#[tokio::test]
async fn a_token_ends_at_sign_out_on_every_process_within_a_second() {
    let system = system().await;
    let client = system.client();
    let (second, _program) = system.another("command-api").await;
    let session = register(&client, &registration(&email())).await.ok(201);
    let (first, email) = (token(&session), session["user"]["email"].as_str().unwrap());
    let other = token(&login(&client, email, PASSWORD).await.ok(200));
    let leave = client.with_key(&first).post_nothing("/auth/logout").await;
    assert_eq!(leave.status, 204, "{}", leave.text());
    let ended = Instant::now();
    assert_eq!(
        client
            .with_key(&first)
            .post_nothing("/auth/logout")
            .await
            .status,
        401
    );
    eventually("the end known elsewhere", async || {
        let answer = second.with_key(&first).post("/circles", &json!({})).await;
        (answer.status == 401).then_some(())
    })
    .await;
    assert_eq!(status_with(&client, &first).await, 401);
    assert!(
        ended.elapsed() < Duration::from_secs(1),
        "{:?}",
        ended.elapsed()
    );
    assert_eq!(status_with(&client, &other).await, 200);
    client.post_nothing("/auth/logout").await.error(401);
}

#[tokio::test]
async fn another_password_ends_all_other_tokens() {
    let system = system().await;
    let client = system.client();
    let session = register(&client, &registration(&email())).await.ok(201);
    let (first, email) = (token(&session), session["user"]["email"].as_str().unwrap());
    let second = token(&login(&client, email, PASSWORD).await.ok(200));
    let change = async |token: &str, old: &str, new: &str| {
        let body = json!({"old": old, "new": new});
        client.with_key(token).post("/auth/password", &body).await
    };
    change(&first, "wrong password", "a new password")
        .await
        .error(401);
    assert!(
        change(&first, PASSWORD, "short")
            .await
            .error(400)
            .contains("new")
    );
    let body = json!({"old": PASSWORD, "new": "a new password"});
    client.post("/auth/password", &body).await.error(401);
    let changed = change(&first, PASSWORD, "a new password").await.ok(200);
    assert_eq!(changed["user"], session["user"]);
    assert_eq!(changed["expires_in"], 3_600);
    let third = token(&changed);
    let known = Instant::now();
    for ended in [&first, &second] {
        eventually("the end of a token", async || {
            (status_with(&client, ended).await == 401).then_some(())
        })
        .await;
    }
    assert!(known.elapsed() < Duration::from_secs(1));
    assert_eq!(status_with(&client, &third).await, 200);
    login(&client, email, PASSWORD).await.error(401);
    login(&client, email, "a new password").await.ok(200);
}

#[tokio::test]
async fn what_ends_a_token_may_be_sent_again_under_its_key() {
    let client = system().await.client();
    let session = register(&client, &registration(&email())).await.ok(201);
    let email = session["user"]["email"].as_str().unwrap();
    let person = client.with_key(&token(&session));
    let key = uuid::Uuid::new_v4().to_string();
    let change = json!({"old": PASSWORD, "new": "a new password"});
    let path = "/auth/password";
    let first = person.post_once(path, &key, &change).await.ok(200);
    let again = person.post_once(path, &key, &change).await.ok(200);
    assert_eq!(first["user"], again["user"]);
    assert_eq!(status_with(&client, &token(&again)).await, 200);
    let other = json!({"old": PASSWORD, "new": "quite another"});
    person.post_once(path, &key, &other).await.error(409);
    person
        .post_once(path, "another key", &change)
        .await
        .error(401);
    person.post(path, &change).await.error(401);
    login(&client, email, "a new password").await.ok(200);

    let person = client.with_key(&token(&again));
    let leave = async |key: &str| {
        let request = person.request(Method::POST, "/auth/logout");
        Answer::to(request.header("idempotency-key", key)).await
    };
    for _ in 0..2 {
        assert_eq!(
            leave(&key).await.status,
            409,
            "a key is good for one request"
        );
        assert_eq!(leave("leave").await.status, 204);
    }
    leave("leave once more").await.error(401);
    person.get("/circles").await.error(401);
}

#[tokio::test]
async fn a_token_that_is_not_ours_is_401() {
    use base64::Engine as _;
    let part = |json: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(json);
    let system = system().await;
    let client = system.client();
    let org = system.organization().await;
    let good = token(&register(&client, &registration(&email())).await.ok(201));
    let [header, claims, signature] =
        <[&str; 3]>::try_from(good.split('.').collect::<Vec<_>>()).unwrap();
    let none = part(r#"{"alg":"none","typ":"JWT"}"#);
    let other = System::start(SHAPE, &[]).await;
    let elsewhere = register(&other.client(), &registration(&email()))
        .await
        .ok(201);
    for wrong in [
        "x".to_owned(),
        org.key.clone(),
        token(&elsewhere),
        format!("{none}.{claims}."),
        format!("{none}.{claims}.{signature}"),
        format!("{header}.{claims}."),
        format!("{header}.{claims}.{}", part("not the signature of anybody")),
        format!(
            "{header}.{}.{signature}",
            part(r#"{"sub":"1","exp":99999999999}"#)
        ),
    ] {
        let bearer = client.with_key(&wrong);
        bearer.get("/circles").await.error(401);
        let fix = json!({"lat": 1, "lng": 1});
        bearer.post("/location/update", &fix).await.error(401);
    }
    client.get("/circles").await.error(401);
    // Nor is a person's token an organization's key.
    let person = client.with_key(&good);
    person.get("/api/v1/workflows").await.error(401);
    person.post("/api/v1/keys", &json!({})).await.error(401);
}

#[tokio::test]
async fn a_token_ends_with_its_time() {
    let system = System::start(SHAPE, &[("WAYPOST_TOKEN_SECONDS", "2")]).await;
    let client = system.client();
    let session = register(&client, &registration(&email())).await.ok(201);
    assert_eq!(session["expires_in"], 2);
    let start = Instant::now();
    eventually("the end of the token", async || {
        (status_with(&client, &token(&session)).await == 401).then_some(())
    })
    .await;
    assert!(
        start.elapsed() < Duration::from_secs(4),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn tiers_say_how_much_an_account_may_do() {
    let system = system().await;
    let client = system.client();
    let session = register(&client, &registration(&email())).await.ok(201);
    let (token, email) = (token(&session), session["user"]["email"].as_str().unwrap());
    let person = client.with_key(&token);
    let answer = person.get("/circles").await;
    assert_eq!(
        answer.header("ratelimit-policy"),
        Some("\"requests\";q=100;w=3600")
    );
    let standing = answer.header("ratelimit").unwrap();
    assert!(standing.starts_with("\"requests\";r=99;t="), "{standing}");
    for _ in 1..100 {
        assert_eq!(person.get("/circles").await.status, 200);
    }
    let over = person.get("/circles").await;
    over.error(429);
    let wait: u64 = over.header("retry-after").unwrap().parse().unwrap();
    assert!((3_000..=3_601).contains(&wait), "{wait}");
    // 429 goes before 400 and 404.
    person.post("/circles", &json!([])).await.error(429);
    // Neither positions nor calls for help are requests.
    let sos = json!({"message": "help"});
    person.post("/sos/trigger", &sos).await.ok(202);
    let fix = json!({"lat": 52.5, "lng": 13.4});
    let answer = person.post("/location/update", &fix).await;
    answer.ok(202);
    assert_eq!(
        answer.header("ratelimit-policy"),
        Some("\"locations\";q=30;w=3600")
    );

    let id = &session["user"]["id"];
    for (tier, requests, locations) in [
        ("family", 1_000, 120),
        ("family+", 10_000, 360),
        ("enterprise", 1_000_000, 100_000),
        ("free", 100, 30),
    ] {
        let told = system.waypost(&["account", "tier", email, tier]).await;
        assert_eq!(told, json!({"accountId": id, "tier": tier}));
        for (path, policy, quota) in [
            ("/circles", "requests", requests),
            ("/location/update", "locations", locations),
        ] {
            let policy = format!("\"{policy}\";q={quota};w=3600");
            eventually("the tier", async || {
                let answer = person.post(path, &json!({})).await;
                (answer.header("ratelimit-policy") == Some(&policy)).then_some(())
            })
            .await;
        }
    }
    let numbers = ["--requests", "7", "--locations", "5000"];
    let set = [&["account", "tier", email, "enterprise"][..], &numbers].concat();
    system.waypost(&set).await;
    eventually("the numbers", async || {
        let answer = person.get("/circles").await;
        (answer.header("ratelimit-policy") == Some("\"requests\";q=7;w=3600")).then_some(())
    })
    .await;
    let unknown = self::email();
    let output = system
        .waypost_output(&["account", "tier", &unknown, "free"], b"")
        .await;
    assert!(!output.status.success());
    let output = system
        .waypost_output(&["account", "tier", email, "gold"], b"")
        .await;
    assert!(!output.status.success());
}
