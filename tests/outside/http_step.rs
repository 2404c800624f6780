//! HTTP steps: secrets, retries, statuses, timeouts.

use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use harness::{Organization, Receiver};
use serde_json::{Value, json};

use super::active;
use crate::system;

/// A workflow of one call with these fields besides its address.
fn calling(url: &str, fields: Value) -> Value {
    let mut call = json!({"id": "call", "type": "HTTP", "url": url});
    let Value::Object(fields) = fields else {
        panic!("fields")
    };
    call.as_object_mut().unwrap().extend(fields);
    active(&json!([{"id": "start", "type": "TRIGGER", "next": ["call"]}, call]))
}

fn quick() -> Value {
    json!({"maxAttempts": 3, "initialSeconds": 0.05, "maxSeconds": 0.1})
}

async fn run(org: &Organization<'_>, definition: &Value) -> Value {
    let workflow = org.workflow(definition).await;
    let run_id = org.trigger(&workflow, &json!({"id": "7"})).await;
    org.ended(&run_id).await
}

fn call(run: &Value) -> &Value {
    &run["steps"][1]
}

fn attempts(run: &Value) -> &Vec<Value> {
    call(run)["attempts"].as_array().expect("attempts")
}

#[tokio::test]
async fn a_failed_call_is_tried_again_until_it_succeeds() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    let tried = std::sync::atomic::AtomicUsize::new(0);
    receiver.reply(move |_| {
        let nth = tried.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let status = if nth < 2 { 503 } else { 200 };
        let status = StatusCode::from_u16(status).unwrap();
        (status, HeaderMap::new(), "text".to_owned())
    });
    let definition = calling(&receiver.url("/"), json!({"retry": quick()}));
    let run = run(&org, &definition).await;
    assert_eq!(
        (&run["state"], &run["error"]),
        (&json!("SUCCEEDED"), &Value::Null)
    );
    assert_eq!(call(&run)["output"]["body"], "text");
    let attempts = attempts(&run);
    assert_eq!(attempts.len(), 3);
    for (attempt, number) in attempts.iter().zip(1..) {
        assert_eq!(attempt["number"], number);
        let failed = attempt["error"].as_str().is_some_and(|e| e.contains("503"));
        assert_eq!(failed, number < 3, "{attempt}");
    }
    let calls = receiver.received();
    let keys: Vec<_> = calls
        .iter()
        .map(|call| call.header("idempotency-key"))
        .collect();
    assert!(!keys[0].is_empty());
    assert_eq!(keys, [keys[0]; 3], "the receiver can tell a repeat");
}

#[tokio::test]
async fn a_call_that_keeps_failing_fails_the_run_with_the_reason() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    receiver.status(500);
    let definition = calling(&receiver.url("/"), json!({"retry": quick()}));
    let run = run(&org, &definition).await;
    assert_eq!(
        (&run["state"], &call(&run)["state"]),
        (&json!("FAILED"), &json!("FAILED"))
    );
    assert_eq!((attempts(&run).len(), receiver.received().len()), (3, 3));
    let reason = run["error"].as_str().expect("a reason");
    assert!(
        reason.contains("call") && reason.contains("500"),
        "{reason}"
    );
}

#[tokio::test]
async fn the_statuses_that_count_as_success_are_the_steps_to_say() {
    let org = system().await.organization().await;
    let once = json!({"maxAttempts": 1});
    for (status, accepted, ends) in [
        (404, json!([404]), "SUCCEEDED"),
        (200, json!([201, 404]), "FAILED"),
        (204, json!(null), "SUCCEEDED"),
        (404, json!(null), "FAILED"),
        (302, json!(null), "FAILED"),
        (302, json!([302]), "SUCCEEDED"),
    ] {
        let receiver = Receiver::start().await;
        let elsewhere = receiver.url("/elsewhere");
        receiver.reply(move |_| {
            let mut headers = HeaderMap::new();
            headers.insert("location", elsewhere.parse().unwrap());
            (
                StatusCode::from_u16(status).unwrap(),
                headers,
                String::new(),
            )
        });
        let fields = json!({"retry": once, "acceptStatus": accepted});
        let run = run(&org, &calling(&receiver.url("/"), fields)).await;
        assert_eq!(run["state"], ends, "{status} of {accepted}");
        assert_eq!(receiver.received().len(), 1, "redirects are not followed");
        if ends == "SUCCEEDED" {
            assert_eq!(call(&run)["output"]["status"], status);
        }
    }
}

#[tokio::test]
async fn a_call_that_takes_too_long_fails() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    receiver.delay(Duration::from_mins(1));
    let fields = json!({"retry": {"maxAttempts": 1}, "timeoutSeconds": 1});
    let run = run(&org, &calling(&receiver.url("/"), fields)).await;
    assert_eq!(run["state"], "FAILED");
    let error = attempts(&run)[0]["error"].as_str().unwrap();
    assert!(error.contains("1 s") || error.contains("time"), "{error}");
}

#[tokio::test]
async fn a_run_past_its_time_fails() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    receiver.status(500);
    let patient = json!({"maxAttempts": 5, "initialSeconds": 600, "maxSeconds": 600});
    let mut definition = calling(&receiver.url("/"), json!({"retry": patient}));
    // Long enough for the first call even on a busy machine.
    definition["timeoutSeconds"] = json!(10);
    let run = run(&org, &definition).await;
    assert_eq!(run["state"], "FAILED");
    let reason = run["error"].as_str().expect("a reason");
    assert!(
        reason.contains('1') && reason.contains("second"),
        "{reason}"
    );
    assert_eq!(receiver.received().len(), 1);
}

#[tokio::test]
async fn a_target_that_nobody_serves_fails_with_a_reason() {
    let org = system().await.organization().await;
    for url in [
        "http://127.0.0.1:1/",
        "http://nobody.invalid/",
        "{{ trigger.id }}",
        "http://{{ trigger.nothing }}/",
    ] {
        let fields = json!({"retry": {"maxAttempts": 1}, "timeoutSeconds": 3});
        let run = run(&org, &calling(url, fields)).await;
        assert_eq!(run["state"], "FAILED", "{url}");
        assert!(
            !run["error"].as_str().expect("a reason").is_empty(),
            "{url}"
        );
    }
}

#[tokio::test]
async fn the_method_and_the_body_are_the_steps_to_say() {
    let org = system().await.organization().await;
    for (method, body) in [
        ("GET", Value::Null),
        ("DELETE", Value::Null),
        ("PUT", json!("{{ trigger.id }}")),
        ("PATCH", json!([1, "{{ trigger.id }}"])),
        (
            "POST",
            json!({"id": "{{ trigger.id }}-{{ trigger.id | upper }}"}),
        ),
    ] {
        let receiver = Receiver::start().await;
        let mut fields = json!({"method": method});
        if !body.is_null() {
            fields["body"] = body.clone();
        }
        let run = run(&org, &calling(&receiver.url("/p"), fields)).await;
        assert_eq!(run["state"], "SUCCEEDED", "{run}");
        let sent = &receiver.received()[0];
        assert_eq!(sent.method.as_str(), method);
        let expected = body.to_string().replace("{{ trigger.id | upper }}", "7");
        let expected = expected.replace("{{ trigger.id }}", "7");
        if body.is_null() {
            assert!(sent.body.is_empty());
        } else {
            assert_eq!(sent.json().to_string(), expected);
        }
    }
}

#[tokio::test]
async fn an_answer_too_large_to_keep_does_not_stop_the_run() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    receiver.reply(|_| {
        (
            StatusCode::OK,
            HeaderMap::new(),
            "x".repeat(8 * 1024 * 1024),
        )
    });
    let fields = json!({"retry": {"maxAttempts": 1}});
    let run = run(&org, &calling(&receiver.url("/"), fields)).await;
    assert!(run["endedAt"].is_string());
    assert!(run.to_string().len() < 2 * 1024 * 1024);
}

#[tokio::test]
async fn an_answer_that_is_nested_too_deep_is_kept_as_text() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    let deep = format!("{}{}", "[".repeat(127), "]".repeat(127));
    let answer = deep.clone();
    receiver.reply(move |_| {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/json".parse().unwrap());
        (StatusCode::OK, headers, answer.clone())
    });
    let run = run(&org, &calling(&receiver.url("/"), json!({}))).await;
    assert_eq!(run["state"], "SUCCEEDED", "{run}");
    assert_eq!(call(&run)["output"]["body"], deep);
}

#[tokio::test]
async fn a_secret_reaches_the_receiver_and_nobody_else() {
    let system = system().await;
    let org = system.organization().await;
    let receiver = Receiver::start().await;
    // A receiver that echoes its request does not reveal the secret either.
    receiver.reply(|received| {
        let echo = json!({"echo": received.header("authorization"), "body": received.json()});
        (StatusCode::OK, HeaderMap::new(), echo.to_string())
    });
    let secret = format!("s3cret-{}", uuid::Uuid::new_v4().simple());
    let set = ["secret", "set", "--org", &org.id, "CRM_TOKEN"];
    let done = system.waypost_reading(&set, secret.as_bytes()).await;
    assert_eq!(done, json!({"name": "CRM_TOKEN"}));
    let fields = json!({
        "method": "POST", "headers": {"Authorization": "Bearer {{ secrets.CRM_TOKEN }}"},
        "body": {"token": "{{ secrets.CRM_TOKEN }}"}, "retry": {"maxAttempts": 1},
    });
    let run = run(&org, &calling(&receiver.url("/"), fields)).await;
    assert_eq!(run["state"], "SUCCEEDED", "{run}");
    let arrived = &receiver.received()[0];
    assert_eq!(arrived.header("authorization"), format!("Bearer {secret}"));
    assert_eq!(arrived.json(), json!({"token": secret}));
    assert!(!run.to_string().contains(&secret), "{run}");

    let fields = json!({"headers": {"A": "{{ secrets.NOBODY }}"}, "retry": {"maxAttempts": 1}});
    let run = self::run(&org, &calling(&receiver.url("/"), fields)).await;
    assert_eq!(run["state"], "FAILED");
    assert!(run["error"].as_str().unwrap().contains("NOBODY"), "{run}");
}
