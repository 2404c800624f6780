//! Requests for one-time codes: repeated under their `Idempotency-Key`, with a token, and from a
//! client that hangs up.

use std::time::Duration;

use futures::future::join_all;
use harness::{Answer, Receiver, System, eventually};
use reqwest::Method;
use serde_json::{Value, json};

use super::accounts::{phone, token};
use super::codes::{register, send, with_token};
use crate::{SHAPE, system};

const SEND: &str = "/auth/otp/send";
/// So that a test may ask until something has happened.
const OFTEN: (&str, &str) = ("WAYPOST_CODE_SENDS_PER_ADDRESS", "100000");

fn key() -> String {
    uuid::Uuid::new_v4().to_string()
}

fn a_phone() -> Value {
    json!({"phone": phone()})
}

#[tokio::test]
async fn a_repeat_sends_nothing_long_after_its_code_has_ended() {
    let system = System::start(SHAPE, &[OFTEN, ("WAYPOST_CODE_SECONDS", "0.5")]).await;
    let (client, phone) = (system.client(), phone());
    let body = json!({"phone": phone});
    let ask = || client.post_once(SEND, "k", &body);
    assert_eq!(ask().await.ok(202), json!({"expires_in": 1}));
    eventually("the end of the code", async || {
        (ask().await.ok(202)["expires_in"] == 0).then_some(())
    })
    .await;
    // Not even after another request for the same number,
    send(&client, &phone).await.ok(202);
    assert_eq!(ask().await.ok(202), json!({"expires_in": 0}));
    assert_eq!(system.outbox(&phone).len(), 2);
    // and the key is good for no other number.
    client.post_once(SEND, "k", &a_phone()).await.error(409);
}

#[tokio::test]
async fn of_several_requests_under_one_key_at_the_same_moment_one_sends_a_code() {
    let system = system().await;
    let (client, key) = (system.client(), key());
    let phones: Vec<String> = (0..6).map(|_| phone()).collect();
    let bodies = phones.iter().map(|phone| json!({"phone": phone}));
    let bodies: Vec<Value> = bodies.collect();
    let sends = bodies.iter().map(|body| client.post_once(SEND, &key, body));
    let answers = join_all(sends).await;
    let with = |status: u16| answers.iter().filter(|one| one.status == status).count();
    assert_eq!((with(202), with(409)), (1, 5));
    let sent = phones.iter().map(|phone| system.outbox(phone).len());
    assert_eq!(sent.sum::<usize>(), 1);
}

#[tokio::test]
async fn a_key_can_be_used_again_once_its_receipt_has_ended_and_takes_no_room() {
    let brief = [OFTEN, ("WAYPOST_IDEMPOTENCY_SECONDS", "0.5")];
    let system = System::start(SHAPE, &brief).await;
    let client = system.client();
    client.post_once(SEND, "k", &a_phone()).await.ok(202);
    let other = a_phone();
    eventually("the end of the receipt", async || {
        let answer = client.post_once(SEND, "k", &other).await;
        (answer.status == 202).then_some(())
    })
    .await;
    let mut database = system.database().await;
    eventually("receipts that have ended to be swept away", async || {
        send(&client, &phone()).await.ok(202);
        let left: i64 = sqlx::query_scalar("SELECT count(*) FROM code_receipts")
            .fetch_one(&mut database)
            .await
            .unwrap();
        (left == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_code_is_sent_or_withdrawn_although_its_client_has_hung_up() {
    let service = Receiver::start().await;
    service.status(503);
    service.delay(Duration::from_millis(500));
    let url = service.url("");
    let settings = [
        OFTEN,
        ("WAYPOST_SMS_URL", url.as_str()),
        ("WAYPOST_SMS_ACCOUNT", "AC0123"),
        ("WAYPOST_SMS_TOKEN", "sms-token"),
        ("WAYPOST_SMS_FROM", "+15005550006"),
    ];
    let system = System::start(SHAPE, &settings).await;
    let (client, body) = (system.client(), a_phone());
    // The client hangs up during the first attempt.
    tokio::select! {
        answer = client.post_once(SEND, "k", &body) => panic!("{}", answer.status),
        _ = service.wait_for(1, |_| true) => {}
    }
    service.delay(Duration::ZERO);
    service.wait_for(3, |_| true).await;
    // The last attempt has failed as well: the same request is tried again, not repeated.
    eventually("the end of the receipt", async || {
        let answer = client.post_once(SEND, "k", &body).await;
        (answer.status == 503).then_some(())
    })
    .await;
    service.status(201);
    client.post_once(SEND, "k", &body).await.ok(202);
    assert_eq!(service.received().len(), 7);
}

#[tokio::test]
async fn a_request_with_a_token_is_counted_as_its_accounts() {
    let system = system().await;
    let client = system.client();
    let session = register(&client, None).await;
    let ada = with_token(&client, &session);
    let first = send(&ada, &phone()).await;
    first.ok(202);
    let policy = first.header("ratelimit-policy");
    assert_eq!(policy, Some("\"requests\";q=100;w=3600"));
    let left = first.header("ratelimit").unwrap();
    assert!(left.starts_with("\"requests\";r=99;"), "{left}");
    let request = client.request(Method::POST, SEND);
    let request = request
        .header("authorization", format!("bearer {}", token(&session)))
        .header("content-type", "application/json");
    let second = Answer::to(request.body(a_phone().to_string())).await;
    second.ok(202);
    assert!(second.header("ratelimit").is_some());
    // What is refused for its body is counted too.
    let over = eventually("the end of the account's limit", async || {
        let answer = ada.post(SEND, &json!({})).await;
        (answer.status == 429).then_some(answer)
    })
    .await;
    assert!(over.error(429).contains("hourly limit of requests"));
    assert!(over.header("retry-after").is_some());
    assert!(over.header("ratelimit").is_some());
    let without = send(&client, &phone()).await;
    without.ok(202);
    assert!(without.header("ratelimit").is_none());
}

#[tokio::test]
async fn an_invalid_token_gets_no_code() {
    let (system, phone) = (system().await, phone());
    send(&system.client().with_key("x"), &phone)
        .await
        .error(401);
    assert!(system.outbox(&phone).is_empty());
}

#[tokio::test]
async fn a_key_belongs_to_the_account_of_the_token() {
    let client = system().await.client();
    let (ada, bob) = (register(&client, None).await, register(&client, None).await);
    let (ada, bob) = (with_token(&client, &ada), with_token(&client, &bob));
    let (key, body) = (key(), a_phone());
    ada.post_once(SEND, &key, &body).await.ok(202);
    ada.post_once(SEND, &key, &body).await.ok(202);
    ada.post_once(SEND, &key, &a_phone()).await.error(409);
    for other in [&bob, &client] {
        other.post_once(SEND, &key, &a_phone()).await.ok(202);
    }
}
