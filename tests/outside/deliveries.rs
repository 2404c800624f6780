//! Webhooks: what arrives, how it is signed, and what happens on failure.

use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use harness::{Organization, Received, Receiver};
use serde_json::{Value, json};
use standardwebhooks::Webhook;

use super::{active, only_begins};
use crate::system;

pub(super) async fn webhook(org: &Organization<'_>, url: &str, events: &[&str]) -> Value {
    let given = json!({"url": url, "events": events});
    org.admin.post("/api/v1/webhooks", &given).await.ok(201)
}

pub(super) fn path(webhook: &Value) -> String {
    format!("/api/v1/webhooks/{}", webhook["id"].as_str().unwrap())
}

/// Runs a workflow that ends at once, and returns the run's id.
pub(super) async fn run(org: &Organization<'_>) -> String {
    let workflow = org.workflow(&only_begins()).await;
    org.trigger(&workflow, &json!({"lead": 1})).await
}

#[track_caller]
fn verify(webhook: &Value, received: &Received) {
    let secret = webhook["secret"].as_str().unwrap();
    let endpoint = Webhook::new(secret).unwrap();
    let judged = endpoint.verify(&received.body, &received.headers);
    judged.expect("a valid signature");
    let mut forged = received.body.to_vec();
    forged[10] ^= 1;
    endpoint.verify(&forged, &received.headers).unwrap_err();
}

/// Waits until the endpoint's only delivery has this status.
pub(super) async fn delivery(org: &Organization<'_>, webhook: &Value, status: &str) -> Value {
    let list = format!("{}/deliveries", path(webhook));
    let list = org
        .until(&list, |list| list["data"][0]["status"] == status)
        .await;
    assert_eq!(list["total"], 1, "{list}");
    list["data"][0].clone()
}

#[tokio::test]
async fn an_event_arrives_signed_and_whole() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    let hook = webhook(&org, &receiver.url("/hook?a=b"), &["run.succeeded"]).await;
    let run_id = run(&org).await;
    let arrived = receiver.wait_for(1, |_| true).await.remove(0);
    assert_eq!(
        (arrived.method.as_str(), arrived.path.as_str()),
        ("POST", "/hook?a=b")
    );
    assert!(
        arrived
            .header("content-type")
            .starts_with("application/json")
    );
    verify(&hook, &arrived);
    let sent_at: i64 = arrived.header("webhook-timestamp").parse().unwrap();
    assert!((chrono::Utc::now().timestamp() - sent_at).abs() < 60);

    let body = arrived.json();
    let mut fields: Vec<_> = body.as_object().unwrap().keys().collect();
    fields.sort();
    assert_eq!(fields, ["data", "position", "timestamp", "type"]);
    assert_eq!(body["type"], "run.succeeded");
    assert_eq!(body["data"]["runId"], run_id);
    chrono::DateTime::parse_from_rfc3339(body["timestamp"].as_str().unwrap()).unwrap();
    let position = body["position"].as_str().unwrap();
    let read = org
        .admin
        .get_at(&format!("/api/v1/runs/{run_id}"), position)
        .await;
    assert_eq!(read.ok(200)["state"], "SUCCEEDED");

    let delivery = delivery(&org, &hook, "SUCCEEDED").await;
    uuid::Uuid::parse_str(delivery["eventId"].as_str().unwrap()).expect("a UUID");
    assert_eq!(delivery["type"], "run.succeeded");
    assert!(
        arrived
            .header("webhook-id")
            .contains(delivery["id"].as_str().unwrap())
    );
    let attempt = &delivery["attempts"][0];
    let mut fields: Vec<_> = attempt.as_object().unwrap().keys().collect();
    fields.sort();
    assert_eq!(fields, ["at", "durationMs", "error", "response", "status"]);
    assert_eq!(
        (&attempt["status"], &attempt["error"]),
        (&json!(200), &Value::Null)
    );
    assert!(attempt["durationMs"].as_u64().is_some());
    assert_eq!(attempt["response"], "{\"ok\":true}");
}

#[tokio::test]
async fn an_endpoint_gets_the_events_that_it_asked_for() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    webhook(&org, &receiver.url("/runs"), &["run.*"]).await;
    webhook(&org, &receiver.url("/contacts"), &["contact.created"]).await;
    webhook(&org, &receiver.url("/hello"), &["custom.hello"]).await;
    let all = json!({"url": receiver.url("/all")});
    org.admin.post("/api/v1/webhooks", &all).await.ok(201);
    let told = active(&json!([
        {"id": "start", "type": "TRIGGER", "next": ["tell"]},
        {"id": "tell", "type": "NOTIFY", "event": "hello", "data": {"a": [1]}},
    ]));
    let workflow = org.workflow(&told).await;
    let contact = json!({"id": "c", "email": "a@b.c"});
    let contacts = "/api/v1/records/contacts";
    org.admin.post(contacts, &contact).await.ok(201);
    org.admin.delete(&format!("{contacts}/c")).await.ok(204);
    org.trigger(&workflow, &json!({})).await;

    let ended = |r: &Received| r.path == "/all" && r.json()["type"] == "run.succeeded";
    receiver.wait_for(1, ended).await;
    // Each endpoint has its own queue.
    receiver.wait_for(6, |r| r.path == "/runs").await;
    receiver.wait_for(1, |r| r.path == "/contacts").await;
    receiver.wait_for(1, |r| r.path == "/hello").await;
    let types = |path: &str| {
        let all = receiver.received();
        let of_path = all.iter().filter(|r| r.path == path);
        let mut types: Vec<_> = of_path
            .map(|r| r.json()["type"].as_str().unwrap().to_owned())
            .collect();
        types.sort();
        types
    };
    assert_eq!(types("/contacts"), ["contact.created"]);
    assert_eq!(types("/hello"), ["custom.hello"]);
    let runs = [
        "run.started",
        "run.step_started",
        "run.step_started",
        "run.step_succeeded",
        "run.step_succeeded",
        "run.succeeded",
    ];
    assert_eq!(types("/runs"), runs);
    receiver.wait_for(11, |r| r.path == "/all").await;
    let all = types("/all");
    for kind in [
        "workflow.saved",
        "workflow.triggered",
        "contact.deleted",
        "custom.hello",
    ] {
        assert!(all.iter().any(|seen| seen == kind), "{kind} in {all:?}");
    }
}

#[tokio::test]
async fn what_fails_is_tried_again_under_the_same_id() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    let tried = std::sync::atomic::AtomicUsize::new(0);
    receiver.reply(move |_| {
        let nth = tried.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let status = if nth < 2 { 500 } else { 204 };
        let body = format!("answer {nth}");
        (
            StatusCode::from_u16(status).unwrap(),
            HeaderMap::new(),
            body,
        )
    });
    let hook = webhook(&org, &receiver.url("/"), &["run.succeeded"]).await;
    run(&org).await;
    let sent = receiver.wait_for(3, |_| true).await;
    for attempt in &sent {
        verify(&hook, attempt);
        assert_eq!(attempt.header("webhook-id"), sent[0].header("webhook-id"));
        assert_eq!(attempt.body, sent[0].body);
    }
    let delivery = delivery(&org, &hook, "SUCCEEDED").await;
    let attempts = delivery["attempts"].as_array().unwrap();
    let statuses: Vec<_> = attempts.iter().map(|attempt| &attempt["status"]).collect();
    assert_eq!(statuses, [500, 500, 204]);
    assert_eq!(attempts[0]["response"], "answer 0");
    assert!(!attempts[0]["error"].is_null());
    assert_eq!(receiver.received().len(), 3);
}

#[tokio::test]
async fn what_keeps_failing_is_given_up() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    receiver.status(503);
    let hook = webhook(&org, &receiver.url("/"), &["run.succeeded"]).await;
    run(&org).await;
    let delivery = delivery(&org, &hook, "FAILED").await;
    let attempts = delivery["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 4, "the first and three more");
    assert_eq!(receiver.received().len(), 4);
}

#[tokio::test]
async fn a_redirect_is_a_failure_and_not_followed() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    let elsewhere = receiver.url("/elsewhere");
    receiver.reply(move |_| {
        let mut headers = HeaderMap::new();
        headers.insert("location", elsewhere.parse().unwrap());
        (StatusCode::TEMPORARY_REDIRECT, headers, String::new())
    });
    let hook = webhook(&org, &receiver.url("/"), &["run.succeeded"]).await;
    run(&org).await;
    let delivery = delivery(&org, &hook, "FAILED").await;
    assert_eq!(delivery["attempts"][0]["status"], 307);
    assert!(receiver.received().iter().all(|r| r.path == "/"));
}

#[tokio::test]
async fn an_endpoint_that_is_gone_is_disabled() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    receiver.status(410);
    let hook = webhook(&org, &receiver.url("/"), &["run.succeeded"]).await;
    run(&org).await;
    org.until(&path(&hook), |hook| hook["status"] == "DISABLED")
        .await;
    delivery(&org, &hook, "FAILED").await;
    assert_eq!(receiver.received().len(), 1, "gone is gone");
    let witness = Receiver::start().await;
    webhook(&org, &witness.url("/"), &["run.succeeded"]).await;
    run(&org).await;
    witness.wait_for(1, |_| true).await;
    assert_eq!(receiver.received().len(), 1, "nothing more is sent");

    // Its owner enables it again.
    receiver.status(200);
    let enabled = json!({"status": "ENABLED"});
    org.admin.patch(&path(&hook), &enabled).await.ok(200);
    run(&org).await;
    receiver.wait_for(2, |_| true).await;
}

#[tokio::test]
async fn a_disabled_or_deleted_endpoint_gets_nothing() {
    let org = system().await.organization().await;
    let (disabled, deleted, witness) = (
        Receiver::start().await,
        Receiver::start().await,
        Receiver::start().await,
    );
    let first = webhook(&org, &disabled.url("/"), &["*"]).await;
    let second = webhook(&org, &deleted.url("/"), &["*"]).await;
    let off = json!({"status": "DISABLED"});
    org.admin.patch(&path(&first), &off).await.ok(200);
    org.admin.delete(&path(&second)).await.ok(204);
    webhook(&org, &witness.url("/"), &["run.succeeded"]).await;
    run(&org).await;
    witness.wait_for(1, |_| true).await;
    let of_runs = |receiver: &Receiver| {
        let mut received = receiver.received().into_iter();
        received.any(|r| r.json()["type"].as_str().unwrap().starts_with("run."))
    };
    assert!(!of_runs(&disabled) && !of_runs(&deleted));
}

#[tokio::test]
async fn a_slow_or_dead_endpoint_delays_no_other() {
    let org = system().await.organization().await;
    let (slow, quick) = (Receiver::start().await, Receiver::start().await);
    slow.delay(Duration::from_mins(1));
    let slow_hook = webhook(&org, &slow.url("/"), &["run.succeeded"]).await;
    webhook(&org, "http://127.0.0.1:1/", &["run.succeeded"]).await;
    webhook(&org, &quick.url("/"), &["run.succeeded"]).await;
    let workflow = org.workflow(&only_begins()).await;
    for _ in 0..40 {
        org.trigger(&workflow, &json!({})).await;
    }
    let received = quick.wait_for(40, |_| true).await;
    assert_eq!(received.len(), 40);
    // An attempt that times out has failed.
    let list = format!("{}/deliveries", path(&slow_hook));
    let timed_out = |list: &Value| {
        let mut deliveries = list["data"].as_array().unwrap().iter();
        deliveries
            .any(|d| d["attempts"][0]["status"].is_null() && !d["attempts"][0]["error"].is_null())
    };
    org.until(&list, timed_out).await;
}

#[tokio::test]
async fn organizations_hear_only_of_themselves() {
    let system = system().await;
    let (org, other) = (system.organization().await, system.organization().await);
    let (mine, theirs) = (Receiver::start().await, Receiver::start().await);
    webhook(&org, &mine.url("/"), &["run.succeeded"]).await;
    webhook(&other, &theirs.url("/"), &["run.succeeded"]).await;
    let (first, second) = (run(&org).await, run(&other).await);
    let of = |received: Vec<Received>| received[0].json()["data"]["runId"].clone();
    assert_eq!(of(mine.wait_for(1, |_| true).await), first);
    assert_eq!(of(theirs.wait_for(1, |_| true).await), second);
    assert_eq!((mine.received().len(), theirs.received().len()), (1, 1));
}
