use schemas::AggregateType;
use serde_json::json;

use crate::support::TestApi;

const PATH: &str = "/api/v1/webhooks";

fn body() -> String {
    json!({"url": "https://hooks.example.com/in", "events": ["run.*"]}).to_string()
}

#[tokio::test]
async fn an_endpoint_is_made_changed_and_deleted() {
    let api = TestApi::open().await;
    let made = api.send("POST", PATH, body()).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let answer = made.json();
    assert_eq!(answer["url"], "https://hooks.example.com/in");
    assert_eq!(answer["events"], json!(["run.*"]));
    assert_eq!(answer["status"], "ENABLED");
    assert!(answer["createdAt"].is_string());
    assert!(made.text("secret").starts_with("whsec_"));

    let path = format!("{PATH}/{}", made.text("id"));
    let changed = api.send("PATCH", &path, r#"{"status": "DISABLED"}"#).await;
    assert_eq!(changed.status, 200, "{}", changed.body);
    let mut expected = answer;
    expected["status"] = json!("DISABLED");
    expected.as_object_mut().unwrap().remove("secret");
    assert_eq!(changed.json(), expected);

    assert_eq!(api.send("DELETE", &path, "").await.status, 204);
    assert_eq!(api.send("DELETE", &path, "").await.status, 404);
    assert_eq!(api.send("PATCH", &path, "{}").await.status, 404);
}

/// What this process knows of an endpoint may lag behind what it has just written itself.
#[tokio::test]
async fn every_command_builds_on_all_that_were_answered_before() {
    let api = TestApi::open().await;
    let made = api.send("POST", PATH, body()).await;
    let path = format!("{PATH}/{}", made.text("id"));
    let change = async |change: &'static str| api.send("PATCH", &path, change).await;
    for round in 0..10 {
        assert_eq!(change(r#"{"status": "DISABLED"}"#).await.status, 200);
        let test = format!("{path}/test");
        assert_eq!(api.send("POST", &test, "").await.status, 409, "{round}");
        let changed = change(r#"{"status": "ENABLED"}"#).await.json();
        assert_eq!(changed["createdAt"], made.json()["createdAt"]);
        for _ in 0..round {
            assert_eq!(api.send("POST", &test, "").await.status, 202);
        }
        let rotate = format!("{path}/rotate-secret");
        assert_eq!(api.send("POST", &rotate, "").await.status, 200);
        // It is that already.
        assert_eq!(change(r#"{"status": "ENABLED"}"#).await.status, 200);
    }
    let events = api.events(AggregateType::Webhook, &made.text("id")).await;
    assert_eq!(events.len(), 1 + 10 * 3 + 45);
    assert_eq!(api.send("DELETE", &path, "").await.status, 204);
    assert_eq!(change("{}").await.status, 404);
}

#[tokio::test]
async fn private_addresses_and_other_slips_are_400() {
    let api = TestApi::open().await;
    for (body, field) in [
        (json!({}), "url"),
        (json!({"url": "http://127.0.0.1:80/"}), "url"),
        (json!({"url": "http://localhost/"}), "url"),
        (json!({"url": "ftp://example.com/"}), "url"),
        (
            json!({"url": "https://example.com/", "events": ["nope"]}),
            "events[0]",
        ),
        (
            json!({"url": "https://example.com/", "events": "run.*"}),
            "events",
        ),
        (
            json!({"url": "https://example.com/", "status": "DISABLED"}),
            "status",
        ),
    ] {
        let answer = api.send("POST", PATH, body.to_string()).await;
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.error().starts_with(field), "{}", answer.body);
    }
}

#[tokio::test]
async fn a_repeat_gets_the_same_endpoint_and_secret() {
    let api = TestApi::open().await;
    let headers = [("idempotency-key", "h")];
    let first = api.send_with("POST", PATH, &headers, body()).await;
    let again = api.send_with("POST", PATH, &headers, body()).await;
    assert_eq!((again.status, again.json()), (201, first.json()));
    let other = r#"{"url": "https://hooks.example.com/other"}"#;
    assert_eq!(
        api.send_with("POST", PATH, &headers, other).await.status,
        409
    );
}
