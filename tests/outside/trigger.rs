//! `POST /api/v1/workflows/{id}/trigger`: its input and results.

use futures::stream;
use harness::{Answer, Client, Organization};
use reqwest::Method;
use serde_json::{Value, json};

use super::only_begins;
use crate::system;

const BOUND: usize = 256 * 1024;

async fn organization_with_workflow() -> (Organization<'static>, String) {
    let org = system().await.organization().await;
    let workflow = org.workflow(&only_begins()).await;
    (org, format!("/api/v1/workflows/{workflow}/trigger"))
}

async fn runs_of(org: &Organization<'_>, trigger: &str) -> i64 {
    // A command without changes returns the position at which all before it is visible.
    let marker = org
        .admin
        .post("/api/v1/records/contacts", &json!({"email": "a@b.c"}))
        .await;
    let list = trigger.replace("/trigger", "/runs");
    let runs = org.admin.get_at(&list, &marker.position()).await.ok(200);
    runs["total"].as_i64().unwrap()
}

fn json_of_size(size: usize) -> String {
    let frame = json!({"text": ""}).to_string().len();
    json!({"text": "x".repeat(size - frame)}).to_string()
}

async fn send(client: &Client, path: &str, body: impl Into<Vec<u8>>) -> Answer {
    client.post_bytes(path, "application/json", body).await
}

#[tokio::test]
async fn a_trigger_is_accepted_with_the_run_and_a_position() {
    let (org, path) = organization_with_workflow().await;
    let answer = org.admin.post(&path, &json!({"lead": 1})).await;
    let started = answer.ok(202);
    assert_eq!(started.as_object().unwrap().len(), 1, "{started}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let run_id = started["runId"].as_str().unwrap();
    let run = format!("/api/v1/runs/{run_id}");
    let run = org.admin.get_at(&run, &answer.position()).await.ok(200);
    assert_eq!(run["runId"], run_id);
    let again = org.admin.post(&path, &json!({"lead": 1})).await.ok(202);
    assert_ne!(again["runId"], run_id, "each trigger is a run of its own");
}

#[tokio::test]
async fn a_body_may_be_absent_blank_or_an_object() {
    let (org, path) = organization_with_workflow().await;
    org.admin.post_nothing(&path).await.ok(202);
    for body in ["", " ", "\r\n\t ", "{}", " {} ", r#"{"a":null}"#] {
        send(&org.admin, &path, body).await.ok(202);
    }
    let kind = "application/json; charset=utf-8";
    org.admin.post_bytes(&path, kind, "{}").await.ok(202);
    assert_eq!(runs_of(&org, &path).await, 8);
}

#[tokio::test]
async fn a_body_that_is_no_object_is_refused_and_starts_nothing() {
    let (org, path) = organization_with_workflow().await;
    for body in [
        "[]",
        r#"[{"a":1}]"#,
        "1",
        "\"text\"",
        "true",
        "null",
        "{",
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        "{} {}",
        "{'a':1}",
        "a=1",
        "NaN",
    ] {
        let message = send(&org.admin, &path, body).await.error(400);
        assert!(!message.is_empty(), "{body}");
    }
    send(&org.admin, &path, b"{\"a\":\"\xff\"}")
        .await
        .error(400);
    assert_eq!(runs_of(&org, &path).await, 0);
}

#[tokio::test]
async fn a_body_has_at_most_256_kib() {
    let (org, path) = organization_with_workflow().await;
    send(&org.admin, &path, json_of_size(BOUND)).await.ok(202);
    let too_large = json_of_size(BOUND + 1);
    send(&org.admin, &path, too_large.clone()).await.error(400);
    send(&org.admin, &path, vec![b' '; BOUND + 1])
        .await
        .error(400);
    // Also without a declared length.
    let pieces = too_large.into_bytes();
    let pieces: Vec<_> = pieces.chunks(40_000).map(<[u8]>::to_vec).collect();
    let pieces = stream::iter(pieces.into_iter().map(Ok::<_, std::io::Error>));
    let request = org
        .admin
        .request(Method::POST, &path)
        .header("content-type", "application/json")
        .body(reqwest::Body::wrap_stream(pieces));
    Answer::to(request).await.error(400);
    assert_eq!(runs_of(&org, &path).await, 1);
}

#[tokio::test]
async fn a_body_of_another_type_is_refused() {
    let (org, path) = organization_with_workflow().await;
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/xml",
        "application/jsonp",
    ] {
        let answer = org.admin.post_bytes(&path, kind, r#"{"a":1}"#).await;
        answer.error(400);
    }
    assert_eq!(runs_of(&org, &path).await, 0);
}

#[tokio::test]
async fn only_the_server_says_who_triggered_and_when() {
    let (org, path) = organization_with_workflow().await;
    let before = chrono::Utc::now();
    let body = r#"{"triggeredBy":"user","triggeredAt":"1999-01-01T00:00:00Z","z":1,"a":[true],
        "triggeredBy":"schedule"}"#;
    let answer = send(&org.admin, &path, body).await.ok(202);
    let run = org.ended(answer["runId"].as_str().unwrap()).await;
    let payload = run["triggerPayload"].as_object().unwrap();
    assert_eq!(payload["triggeredBy"], "api_key");
    let at = payload["triggeredAt"].as_str().unwrap();
    let at = chrono::DateTime::parse_from_rfc3339(at).unwrap();
    let age = at.signed_duration_since(before).num_seconds();
    assert!((-1..60).contains(&age), "triggered at {at}");
    assert_eq!((&payload["z"], &payload["a"]), (&json!(1), &json!([true])));
    assert_eq!(payload.len(), 4, "{payload:?}");
}

#[tokio::test]
async fn what_was_sent_is_kept_as_it_was() {
    let (org, path) = organization_with_workflow().await;
    let sent = json!({
        "größe": "Ünïcödé 🚲 \u{202e}\u{0} \"\\ /", "": "empty name", "nested": {"b": [1, {"c": null}]},
        "large": 9_007_199_254_740_993_i64, "small": -0.000_125, "false": false, "runId": "mine",
    });
    let run_id = org.admin.post(&path, &sent).await.ok(202)["runId"].clone();
    let mut payload = org.ended(run_id.as_str().unwrap()).await["triggerPayload"].clone();
    let fields = payload.as_object_mut().unwrap();
    fields.remove("triggeredBy");
    fields.remove("triggeredAt");
    assert_eq!(payload, sent);

    let twice = send(&org.admin, &path, r#"{"a":1,"a":2}"#).await.ok(202);
    let run = org.ended(twice["runId"].as_str().unwrap()).await;
    assert_eq!(run["triggerPayload"]["a"], 2, "the last of the same name");
}

#[tokio::test]
async fn a_body_that_would_exhaust_a_parser_is_answered_like_any_other() {
    let (org, path) = organization_with_workflow().await;
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(20_000), "]".repeat(20_000));
    send(&org.admin, &path, deep).await.error(400);
    send(&org.admin, &path, format!("{{\"a\":{}}}", "9".repeat(400)))
        .await
        .error(400);
}

/// An object of so many levels.
fn json_of_levels(levels: usize) -> String {
    let (open, close) = ("[".repeat(levels - 1), "]".repeat(levels - 1));
    format!("{{\"a\":{open}{close}}}")
}

#[tokio::test]
async fn a_body_that_is_nested_too_deep_to_be_read_again_is_refused() {
    let (org, path) = organization_with_workflow().await;
    for levels in [101, 126, 127, 128] {
        let answer = send(&org.admin, &path, json_of_levels(levels)).await;
        let message = answer.error(400);
        assert!(message.contains("100 levels"), "{levels}: {message}");
    }
    let sent = json_of_levels(100);
    let started = send(&org.admin, &path, sent.clone()).await.ok(202);
    let run_id = started["runId"].as_str().unwrap();
    let run = org.ended(run_id).await;
    assert_eq!(run["state"], "SUCCEEDED", "{run}");
    let sent: Value = serde_json::from_str(&sent).unwrap();
    assert_eq!(run["triggerPayload"]["a"], sent["a"]);
    let feed = "/api/v1/events?types=workflow.triggered,run.succeeded";
    let feed = org.admin.get(feed).await.text();
    assert_eq!(feed.lines().count(), 2, "{feed}");
    assert_eq!(runs_of(&org, &path).await, 1);
}

#[tokio::test]
async fn a_workflow_that_is_not_the_organizations_own_is_not_found() {
    let (org, path) = organization_with_workflow().await;
    let other = system().await.organization().await;
    let unknown = org
        .admin
        .post("/api/v1/workflows/nothing/trigger", &json!({}))
        .await
        .error(404);
    let foreign = other.admin.post(&path, &json!({})).await.error(404);
    assert_eq!(unknown, foreign, "nobody learns which ids exist");
    for id in [
        "%20",
        "%2F",
        "..%2F..",
        "a%00b",
        "%F0%9F%9A%B2",
        &"x".repeat(200),
    ] {
        let path = format!("/api/v1/workflows/{id}/trigger");
        let answer = org.admin.post(&path, &json!({})).await;
        assert!(
            [400, 404].contains(&answer.status.as_u16()),
            "{id}: {}",
            answer.status
        );
    }
    assert_eq!(runs_of(&org, &path).await, 0);
}

#[tokio::test]
async fn a_missing_workflow_id_is_refused() {
    let org = system().await.organization().await;
    let path = "/api/v1/workflows//trigger";
    org.admin.post(path, &json!({})).await.error(400);
    org.admin.post_nothing(path).await.error(400);
    org.system.client().post_nothing(path).await.error(401);
}

#[tokio::test]
async fn only_an_active_workflow_with_a_beginning_is_triggered() {
    let (org, path) = organization_with_workflow().await;
    let workflow = path.trim_end_matches("/trigger");
    for status in ["DRAFT", "PAUSED", "ARCHIVED"] {
        let mut definition = only_begins();
        definition["status"] = json!(status);
        org.admin.put(workflow, &definition).await.ok(200);
        let message = org.admin.post(&path, &json!({})).await.error(409);
        assert!(message.contains(status), "{message}");
    }
    let endless = json!({"name": "No beginning", "status": "ACTIVE", "steps": []});
    org.admin.put(workflow, &endless).await.ok(200);
    let message = org.admin.post(&path, &json!({})).await.error(409);
    assert!(message.contains("TRIGGER"), "{message}");
    assert_eq!(runs_of(&org, &path).await, 0);

    org.admin.put(workflow, &only_begins()).await.ok(200);
    org.admin.post(&path, &json!({})).await.ok(202);
}

#[tokio::test]
async fn a_run_follows_the_version_that_was_triggered() {
    let (org, path) = organization_with_workflow().await;
    let workflow = path.trim_end_matches("/trigger");
    let mut renamed = only_begins();
    renamed["name"] = json!("Renamed");
    org.admin.put(workflow, &renamed).await.ok(200);
    let run_id = org.admin.post(&path, &json!({})).await.ok(202)["runId"].clone();
    let run: Value = org.ended(run_id.as_str().unwrap()).await;
    assert_eq!(run["workflowVersion"], 2);
}
