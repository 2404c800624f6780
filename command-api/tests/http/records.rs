use std::time::Duration;

use schemas::{AggregateType, Event};
use serde_json::json;

use crate::support::TestApi;

const PATH: &str = "/api/v1/records/contacts";

#[tokio::test]
async fn a_record_is_made_replaced_and_deleted() {
    let api = TestApi::open().await;
    let made = api
        .send("POST", PATH, r#"{"id": "c1", "firstName": "Ada"}"#)
        .await;
    assert_eq!((made.status, made.json()), (201, json!({"id": "c1"})));
    assert!(made.position().is_some());
    let twice = api
        .send("POST", PATH, r#"{"id": "c1", "firstName": "Ada"}"#)
        .await;
    assert_eq!(twice.status, 409, "{}", twice.body);

    let path = format!("{PATH}/c1");
    let replaced = api.send("PUT", &path, r#"{"lastName": "L"}"#).await;
    assert_eq!(
        (replaced.status, replaced.json()),
        (200, json!({"id": "c1"}))
    );
    let same = api.send("PUT", &path, r#"{"lastName": "L"}"#).await;
    assert_eq!(same.status, 200);
    assert_eq!(same.position(), replaced.position(), "nothing was written");

    assert_eq!(api.send("DELETE", &path, "").await.status, 204);
    assert_eq!(api.send("DELETE", &path, "").await.status, 404);
    assert_eq!(
        api.send("PUT", &path, r#"{"lastName": "L"}"#).await.status,
        201
    );
    let events = api.events(AggregateType::Contact, "c1").await;
    assert_eq!(events.len(), 4);
    assert!(matches!(events[3].event, Event::ContactCreated(_)));
}

#[tokio::test]
async fn a_record_without_an_id_gets_one() {
    let api = TestApi::open().await;
    let made = api
        .send("POST", PATH, r#"{"email": "a@example.org"}"#)
        .await;
    assert_eq!(made.status, 201);
    assert_eq!(
        api.events(AggregateType::Contact, &made.text("id"))
            .await
            .len(),
        1
    );
}

#[tokio::test]
async fn wrong_requests_are_named() {
    let api = TestApi::open().await;
    for (body, field) in [
        ("{}", "email"),
        (r#"{"firstName": 1}"#, "firstName"),
        (r#"{"firstName": "A", "shoeSize": 1}"#, "shoeSize"),
        (r#"{"firstName": "A", "id": ""}"#, "id"),
        ("[]", "body"),
        ("{", "the body is not valid JSON"),
        ("", "the body is not valid JSON"),
    ] {
        let answer = api.send("POST", PATH, body).await;
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.error().starts_with(field), "{}", answer.body);
    }
    let path = format!("{PATH}/c1");
    let other = api
        .send("PUT", &path, r#"{"id": "c2", "firstName": "A"}"#)
        .await;
    assert_eq!(other.status, 400, "{}", other.body);
    let unknown = "/api/v1/records/wizards";
    assert_eq!(api.send("POST", unknown, "{}").await.status, 404);
    assert_eq!(
        api.send("DELETE", "/api/v1/records/wizards/1", "")
            .await
            .status,
        404
    );
    let plain = [("content-type", "text/plain")];
    assert_eq!(api.send_with("POST", PATH, &plain, "{}").await.status, 415);
    assert_eq!(
        api.send("POST", PATH, "x".repeat(1_100_000)).await.status,
        413
    );
}

#[tokio::test]
async fn a_repeat_gets_the_first_answer_whatever_ids_it_names() {
    let api = TestApi::open().await;
    let headers = [("idempotency-key", "r")];
    let first = api
        .send_with("POST", PATH, &headers, r#"{"firstName": "Ada"}"#)
        .await;
    let again = api
        .send_with("POST", PATH, &headers, r#"{"firstName": "Ada"}"#)
        .await;
    assert_eq!((again.status, &again.body), (201, &first.body));
    for body in [
        r#"{"firstName": "Eve"}"#,
        r#"{"id": "c9", "firstName": "Ada"}"#,
    ] {
        let other = api.send_with("POST", PATH, &headers, body).await;
        assert_eq!(other.status, 409, "{}", other.body);
    }
    assert!(api.events(AggregateType::Contact, "c9").await.is_empty());

    let headers = [("idempotency-key", "with an id")];
    for _ in 0..2 {
        let body = r#"{"id": "c8", "firstName": "Ada"}"#;
        let answer = api.send_with("POST", PATH, &headers, body).await;
        assert_eq!((answer.status, answer.json()), (201, json!({"id": "c8"})));
    }
}

#[tokio::test]
async fn an_old_key_may_be_used_again() {
    let api = TestApi::with_receipts_lasting(Duration::ZERO).await;
    let headers = [("idempotency-key", "r")];
    let first = api
        .send_with("POST", PATH, &headers, r#"{"firstName": "Ada"}"#)
        .await;
    let second = api
        .send_with("POST", PATH, &headers, r#"{"firstName": "Eve"}"#)
        .await;
    assert_eq!((first.status, second.status), (201, 201));
    assert_ne!(first.body, second.body);
}
