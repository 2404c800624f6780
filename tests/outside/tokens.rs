//! Access tokens: how long they are valid, what ends them, what they allow.

use std::time::{Duration, Instant};

use harness::{Answer, System, eventually};
use reqwest::Method;
use serde_json::json;

use super::accounts::{PASSWORD, email, login, register, registration, status_with, token};
use crate::{SHAPE, system};

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
    eventually("the end known where reads are answered", async || {
        (status_with(&client, &first).await == 401).then_some(())
    })
    .await;
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
    eventually("the end known where reads are answered", async || {
        (person.get("/circles").await.status == 401).then_some(())
    })
    .await;
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
    // 429 is checked before 400 and 404.
    person.post("/circles", &json!([])).await.error(429);
    // Positions and calls for help do not count as requests.
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
