//! Runs that are retried as a whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::{HeaderMap, StatusCode};
use harness::{Organization, Receiver};
use serde_json::{Value, json};

use super::active;
use crate::system;

/// A workflow that notifies, calls and notifies again.
async fn calling(org: &Organization<'_>, receiver: &Receiver) -> String {
    org.workflow(&active(&json!([
        {"id": "start", "type": "TRIGGER", "next": ["first"]},
        {"id": "first", "type": "NOTIFY", "event": "first", "next": ["call"]},
        {"id": "call", "type": "HTTP", "method": "POST", "url": receiver.url("/"),
         "retry": {"maxAttempts": 2, "initialSeconds": 0.05, "maxSeconds": 0.05},
         "next": ["last"]},
        {"id": "last", "type": "NOTIFY", "event": "last"},
    ])))
    .await
}

/// A receiver that fails until the flag is set.
async fn failing() -> (Receiver, Arc<AtomicBool>) {
    let receiver = Receiver::start().await;
    let well = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&well);
    receiver.reply(move |_| {
        let status = if told.load(Ordering::Relaxed) {
            200
        } else {
            503
        };
        let status = StatusCode::from_u16(status).unwrap();
        (status, HeaderMap::new(), String::new())
    });
    (receiver, well)
}

fn numbers(run: &Value, step: usize) -> Vec<i64> {
    let attempts = run["steps"][step]["attempts"].as_array().expect("attempts");
    let numbers = attempts.iter().map(|attempt| attempt["number"].as_i64());
    numbers.map(|number| number.expect("a number")).collect()
}

#[tokio::test]
async fn a_failed_run_goes_on_from_what_failed() {
    let org = system().await.organization().await;
    let (receiver, well) = failing().await;
    let workflow = calling(&org, &receiver).await;
    let run_id = org.trigger(&workflow, &json!({})).await;
    let failed = org.ended(&run_id).await;
    assert_eq!(failed["state"], "FAILED", "{failed}");
    assert_eq!(failed["steps"][3]["state"], "SKIPPED");

    well.store(true, Ordering::Relaxed);
    let path = format!("/api/v1/runs/{run_id}");
    let retried = org.admin.post(&format!("{path}/retry"), &json!({})).await;
    assert_eq!(retried.ok(202), json!({"runId": run_id}));
    let run = org.until(&path, |run| run["state"] == "SUCCEEDED").await;
    assert_eq!(run["error"], Value::Null);
    assert_eq!(run["startedAt"], failed["startedAt"]);
    assert_eq!(
        numbers(&run, 1),
        [1],
        "what had succeeded was not done again"
    );
    assert_eq!(numbers(&run, 2), [1, 2, 3]);
    assert_eq!(run["steps"][3]["state"], "SUCCEEDED");

    let again = org.admin.post(&format!("{path}/retry"), &json!({})).await;
    assert_eq!(again.status, 409);
    let error = again.json()["error"].as_str().expect("error").to_owned();
    assert!(error.contains("SUCCEEDED"), "{error}");
}

#[tokio::test]
async fn a_cancelled_run_can_be_retried_and_one_under_way_cannot() {
    let org = system().await.organization().await;
    let workflow = org
        .workflow(&active(&json!([
            {"id": "start", "type": "TRIGGER", "next": ["reply"]},
            {"id": "reply", "type": "WAIT_FOR_EVENT", "event": "lead.created",
             "timeoutSeconds": 3_600},
        ])))
        .await;
    let run_id = org.trigger(&workflow, &json!({})).await;
    let path = format!("/api/v1/runs/{run_id}");
    org.until(&path, |run| run["state"] == "WAITING").await;
    let early = org.admin.post(&format!("{path}/retry"), &json!({})).await;
    assert_eq!(early.status, 409);
    let cancel = org.admin.post(&format!("{path}/cancel"), &json!({})).await;
    cancel.ok(202);
    let cancelled = org.ended(&run_id).await;
    assert_eq!(cancelled["state"], "CANCELLED");
    let retried = org.admin.post(&format!("{path}/retry"), &json!({})).await;
    retried.ok(202);
    org.until(&path, |run| run["state"] == "WAITING").await;
    let lead = json!({"id": "l-1", "name": "Ada"});
    org.admin.post("/api/v1/records/leads", &lead).await.ok(201);
    let run = org.until(&path, |run| run["state"] == "SUCCEEDED").await;
    assert_eq!(numbers(&run, 1), [1, 2]);
}

#[tokio::test]
async fn only_who_may_retries_a_run_that_is_there() {
    let org = system().await.organization().await;
    let unknown = org.admin.post("/api/v1/runs/none/retry", &json!({})).await;
    assert_eq!(unknown.status, 404);
    let reader = org.client(&["workflows:read", "workflows:trigger"]).await;
    let refused = reader.post("/api/v1/runs/none/retry", &json!({})).await;
    assert_eq!(refused.status, 403);
    let error = refused.json()["error"].as_str().expect("error").to_owned();
    assert!(error.contains("workflows:write"), "{error}");
}

#[tokio::test]
async fn a_repeat_with_the_same_idempotency_key_retries_once() {
    let org = system().await.organization().await;
    let (receiver, _) = failing().await;
    let workflow = calling(&org, &receiver).await;
    let run_id = org.trigger(&workflow, &json!({})).await;
    org.ended(&run_id).await;
    let path = format!("/api/v1/runs/{run_id}");
    let retry = async || {
        let path = format!("{path}/retry");
        org.admin.post_once(&path, "once", &json!({})).await
    };
    assert_eq!(retry().await.ok(202), json!({"runId": run_id}));
    // It fails again, after as many attempts as before.
    let ended = |run: &Value| run["state"] == "FAILED" && numbers(run, 2).len() == 4;
    org.until(&path, ended).await;
    assert_eq!(retry().await.ok(202), json!({"runId": run_id}));
    let again = org.admin.post(&format!("{path}/retry"), &json!({})).await;
    again.ok(202);
    let run = org.until(&path, |run| numbers(run, 2).len() == 6).await;
    assert_eq!(numbers(&run, 2), [1, 2, 3, 4, 5, 6]);
}
