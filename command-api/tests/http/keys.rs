use schemas::{AggregateType, Event};
use serde_json::json;

use crate::support::TestApi;

const PATH: &str = "/api/v1/keys";

fn body(scopes: &[&str]) -> String {
    json!({"name": "CRM", "scopes": scopes}).to_string()
}

fn bearer(key: &str) -> String {
    format!("Bearer {key}")
}

#[tokio::test]
async fn a_key_works_at_once_and_no_longer_once_revoked() {
    let api = TestApi::open().await;
    let made = api.send("POST", PATH, body(&["keys:manage"])).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let (id, key) = (made.text("keyId"), bearer(&made.text("key")));
    let headers = [("authorization", key.as_str())];
    let used = api
        .send_with("POST", PATH, &headers, body(&["keys:manage"]))
        .await;
    assert_eq!(used.status, 201, "{}", used.body);

    let path = format!("{PATH}/{id}");
    assert_eq!(api.send("DELETE", &path, "").await.status, 204);
    assert_eq!(api.send("DELETE", &path, "").await.status, 404);
    assert_eq!(
        api.send("DELETE", "/api/v1/keys/none", "").await.status,
        404
    );
    loop {
        let refused = api
            .send_with("POST", PATH, &headers, body(&["keys:manage"]))
            .await;
        if refused.status == 401 {
            break;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_key_gives_only_what_it_has() {
    let api = TestApi::open().await;
    let made = api
        .send("POST", PATH, body(&["keys:manage", "records:write"]))
        .await;
    let key = bearer(&made.text("key"));
    let headers = [("authorization", key.as_str())];
    let given = api
        .send_with("POST", PATH, &headers, body(&["records:write"]))
        .await;
    assert_eq!(given.status, 201, "{}", given.body);
    let refused = api
        .send_with("POST", PATH, &headers, body(&["events:read"]))
        .await;
    assert_eq!(refused.status, 403);
    assert!(refused.error().contains("events:read"), "{}", refused.body);
}

#[tokio::test]
async fn wrong_requests_are_400_naming_the_field() {
    let api = TestApi::open().await;
    for (body, field) in [
        (json!({"scopes": ["admin"]}), "name"),
        (json!({"name": "", "scopes": ["admin"]}), "name"),
        (json!({"name": "n"}), "scopes"),
        (json!({"name": "n", "scopes": []}), "scopes"),
        (json!({"name": "n", "scopes": ["nope"]}), "scopes[0]"),
        (
            json!({"name": "n", "scopes": ["admin"], "rateLimit": 0}),
            "rateLimit",
        ),
        (
            json!({"name": "n", "scopes": ["admin"], "expiresAt": "2001-01-01T00:00:00Z"}),
            "expiresAt",
        ),
        (json!({"name": "n", "scopes": ["admin"], "x": 1}), "x"),
    ] {
        let answer = api.send("POST", PATH, body.to_string()).await;
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.error().starts_with(field), "{}", answer.body);
    }
}

#[tokio::test]
async fn a_repeat_gets_the_same_key_and_makes_none() {
    let api = TestApi::open().await;
    let headers = [("idempotency-key", "k")];
    let first = api
        .send_with("POST", PATH, &headers, body(&["admin"]))
        .await;
    let again = api
        .send_with("POST", PATH, &headers, body(&["admin"]))
        .await;
    assert_eq!((again.status, &again.body), (201, &first.body));
    assert_eq!(again.position(), first.position());
    let other = api
        .send_with("POST", PATH, &headers, body(&["keys:manage"]))
        .await;
    assert_eq!(other.status, 409, "{}", other.body);
    let events = api.events(AggregateType::Key, &first.text("keyId")).await;
    let [only] = events.as_slice() else {
        panic!("{events:?}");
    };
    let Event::KeyCreated(created) = &only.event else {
        panic!("{only:?}");
    };
    assert_eq!(created.rate_limit, 1_000);
    assert!(!created.key_sha256.contains(&first.text("key")));
}
