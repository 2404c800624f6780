//! Runs from trigger to end, and reading them.

use axum::http::{HeaderMap, StatusCode};
use chrono::{DateTime, Utc};
use harness::{Answer, Organization, Receiver};
use reqwest::Method;
use serde_json::{Value, json};

use super::active;
use crate::system;

/// TRIGGER, then a call of `url`, then a NOTIFY with the result.
fn welcome(url: &str) -> Value {
    active(&json!([
        {"id": "start", "type": "TRIGGER", "next": ["call"]},
        {"id": "call", "type": "HTTP", "method": "POST", "url": url,
         "headers": {"X-Lead": "{{ trigger.email }}", "X-Run": "{{ run.id }}"},
         "body": {
             "whole": "{{ trigger.lead }}", "count": "{{ trigger.count }}",
             "flag": "{{ trigger.flag }}", "none": "{{ trigger.none }}",
             "text": "Hello {{ trigger.email }}, you are {{ trigger.count }}",
             "list": ["{{ trigger.count }}", 1, {"deep": "{{ trigger.lead.tags[0] }}"}],
             "fixed": {"a": [1, null, true]}},
         "next": ["tell"]},
        {"id": "tell", "type": "NOTIFY", "event": "welcomed",
         "data": {"status": "{{ steps.call.output.status }}",
                  "answer": "{{ steps.call.output.body.id }}",
                  "type": "{{ steps.call.output.headers['content-type'] }}"}},
    ]))
}

fn lead() -> Value {
    json!({"email": "ada@example.org", "count": 7, "flag": false, "none": null,
        "lead": {"tags": ["né", 2], "empty": {}}})
}

fn answering() -> (StatusCode, HeaderMap, String) {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "application/json".parse().unwrap());
    (StatusCode::CREATED, headers, "{\"id\": 42}".to_owned())
}

fn step<'r>(run: &'r Value, id: &str) -> &'r Value {
    let mut steps = run["steps"].as_array().expect("steps").iter();
    steps.find(|step| step["id"] == id).expect("the step")
}

fn time(value: &Value) -> DateTime<Utc> {
    let text = value.as_str().expect("a time");
    DateTime::parse_from_rfc3339(text).expect("RFC 3339").into()
}

#[tokio::test]
async fn a_trigger_becomes_a_run_that_sends_a_request_and_a_notification() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    receiver.reply(|_| answering());
    let workflow = org
        .workflow(&welcome(&receiver.url("/leads?x={{ trigger.count }}")))
        .await;
    let run_id = org.trigger(&workflow, &lead()).await;
    let run = org.ended(&run_id).await;

    let calls = receiver.received();
    assert_eq!(calls.len(), 1);
    let call = &calls[0];
    assert_eq!(
        (&call.method, call.path.as_str()),
        (&Method::POST, "/leads?x=7")
    );
    assert_eq!(call.header("x-lead"), "ada@example.org");
    assert_eq!(call.header("x-run"), run_id);
    assert!(call.header("content-type").starts_with("application/json"));
    assert!(!call.header("idempotency-key").is_empty());
    let sent = json!({
        "whole": {"tags": ["né", 2], "empty": {}}, "count": 7, "flag": false, "none": null,
        "text": "Hello ada@example.org, you are 7",
        "list": [7, 1, {"deep": "né"}], "fixed": {"a": [1, null, true]},
    });
    assert_eq!(call.json(), sent);

    assert_eq!(run["state"], "SUCCEEDED", "{run}");
    let output = &step(&run, "call")["output"];
    assert_eq!(
        (&output["status"], &output["body"]),
        (&json!(201), &json!({"id": 42}))
    );
    assert_eq!(output["headers"]["content-type"], "application/json");
    let told = json!({"status": 201, "answer": 42, "type": "application/json"});
    let tell = step(&run, "tell");
    assert!(
        [&tell["input"], &tell["input"]["data"]].contains(&&told),
        "{tell}"
    );
}

#[tokio::test]
async fn a_run_reads_as_promised() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    receiver.reply(|_| answering());
    let workflow = org.workflow(&welcome(&receiver.url("/"))).await;
    let before = Utc::now();
    let run_id = org.trigger(&workflow, &lead()).await;
    let run = org.ended(&run_id).await;
    let mut fields: Vec<_> = run.as_object().unwrap().keys().collect();
    fields.sort();
    assert_eq!(
        fields,
        [
            "createdAt",
            "endedAt",
            "error",
            "runId",
            "startedAt",
            "state",
            "steps",
            "triggerPayload",
            "workflowId",
            "workflowVersion",
        ]
    );
    assert_eq!(
        (&run["runId"], &run["workflowId"]),
        (&json!(run_id), &json!(workflow))
    );
    assert_eq!(
        (&run["workflowVersion"], &run["error"]),
        (&json!(1), &Value::Null)
    );
    let times = ["createdAt", "startedAt", "endedAt"].map(|name| time(&run[name]));
    assert!(times.is_sorted(), "{times:?}");
    assert!((times[0] - before).num_seconds().abs() < 60);
    let steps = run["steps"].as_array().unwrap();
    for (step, (id, kind)) in
        steps
            .iter()
            .zip([("start", "TRIGGER"), ("call", "HTTP"), ("tell", "NOTIFY")])
    {
        let mut fields: Vec<_> = step.as_object().unwrap().keys().collect();
        fields.sort();
        assert_eq!(
            fields,
            ["attempts", "id", "input", "output", "state", "type"]
        );
        assert_eq!((&step["id"], &step["type"]), (&json!(id), &json!(kind)));
        assert_eq!(step["state"], "SUCCEEDED");
        let attempts = step["attempts"].as_array().unwrap();
        assert_eq!(attempts.len(), 1);
        let attempt = &attempts[0];
        assert_eq!(
            (&attempt["number"], &attempt["error"]),
            (&json!(1), &Value::Null)
        );
        assert!(time(&attempt["startedAt"]) <= time(&attempt["endedAt"]));
    }
    assert_eq!(steps.len(), 3);
}

#[tokio::test]
async fn steps_join_at_the_first_or_after_all() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    let call = |id: &str, next: &str| json!({"id": id, "type": "HTTP", "url": receiver.url(&format!("/{id}")), "next": [next]});
    let joined = |join: Value| {
        let mut last = json!({"id": "end", "type": "HTTP", "url": receiver.url("/end")});
        if !join.is_null() {
            last["join"] = join;
        }
        active(&json!([
            {"id": "start", "type": "TRIGGER", "next": ["a", "b"]},
            call("a", "end"), call("b", "end"), last,
        ]))
    };
    for join in [json!("all"), json!("any"), Value::Null] {
        let workflow = org.workflow(&joined(join.clone())).await;
        let run_id = org.trigger(&workflow, &json!({})).await;
        let run = org.ended(&run_id).await;
        assert_eq!(run["state"], "SUCCEEDED", "{join}: {run}");
        for id in ["a", "b", "end"] {
            assert_eq!(step(&run, id)["state"], "SUCCEEDED");
            assert_eq!(step(&run, id)["attempts"].as_array().unwrap().len(), 1);
        }
        if join == "all" {
            let begun = time(&step(&run, "end")["attempts"][0]["startedAt"]);
            for id in ["a", "b"] {
                assert!(time(&step(&run, id)["attempts"][0]["endedAt"]) <= begun);
            }
        }
    }
    assert_eq!(receiver.received().len(), 9, "each step of each run once");
}

#[tokio::test]
async fn a_run_that_cannot_end_by_itself_is_cancelled() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    receiver.status(500);
    let workflow = org
        .workflow(&active(&json!([
            {"id": "start", "type": "TRIGGER", "next": ["call"]},
            {"id": "call", "type": "HTTP", "url": receiver.url("/"),
             "retry": {"maxAttempts": 10, "initialSeconds": 3600, "maxSeconds": 3600}},
        ])))
        .await;
    let run_id = org.trigger(&workflow, &json!({})).await;
    let run = format!("/api/v1/runs/{run_id}");
    let waiting = org.until(&run, |run| run["state"] == "WAITING").await;
    assert_eq!(waiting["endedAt"], Value::Null);
    let attempt = &step(&waiting, "call")["attempts"][0];
    assert!(
        attempt["error"].as_str().unwrap().contains("500"),
        "{attempt}"
    );

    let cancel = format!("{run}/cancel");
    let cancelled = org.admin.post_nothing(&cancel).await;
    cancelled.ok(202);
    let read = org.admin.get_at(&run, &cancelled.position()).await.ok(200);
    assert_eq!(read["state"], "CANCELLED", "{read}");
    assert!(!read["endedAt"].is_null());
    assert_eq!(receiver.received().len(), 1);
    let list = format!("/api/v1/workflows/{workflow}/runs?state=CANCELLED");
    org.until(&list, |list| list["data"][0]["runId"] == run_id)
        .await;
}

#[tokio::test]
async fn a_run_that_has_ended_is_not_cancelled() {
    let org = system().await.organization().await;
    let workflow = org.workflow(&super::only_begins()).await;
    let run_id = org.trigger(&workflow, &json!({})).await;
    org.ended(&run_id).await;
    let cancel = format!("/api/v1/runs/{run_id}/cancel");
    org.admin.post_nothing(&cancel).await.error(409);
    assert_eq!(org.ended(&run_id).await["state"], "SUCCEEDED");
}

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Triggers with a `traceparent`, and returns what the receiver got.
async fn traced(org: &Organization<'_>, receiver: &Receiver, headers: &[(&str, &str)]) -> Answer {
    receiver.reply(|_| answering());
    let workflow = org.workflow(&welcome(&receiver.url("/step"))).await;
    let path = format!("/api/v1/workflows/{workflow}/trigger");
    let mut request = org
        .admin
        .request(Method::POST, &path)
        .header("content-type", "application/json")
        .body(lead().to_string());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Answer::to(request).await
}

#[tokio::test]
async fn a_trace_runs_from_the_request_to_the_call_and_the_webhook() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    let webhook = json!({"url": receiver.url("/hook"), "events": ["run.succeeded"]});
    org.admin.post("/api/v1/webhooks", &webhook).await.ok(201);
    let parent = format!("00-{TRACE}-00f067aa0ba902b7-01");
    let answer = traced(&org, &receiver, &[("traceparent", &parent)]).await;
    answer.ok(202);
    assert!(answer.header("traceparent").unwrap().contains(TRACE));
    for path in ["/step", "/hook"] {
        let calls = receiver.wait_for(1, |call| call.path == path).await;
        let sent = calls[0].header("traceparent");
        assert!(sent.starts_with(&format!("00-{TRACE}-")), "{path}: {sent}");
    }
}

#[tokio::test]
async fn a_request_without_a_trace_begins_one() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    for headers in [&[][..], &[("traceparent", "00-nonsense-01")]] {
        let answer = traced(&org, &receiver, headers).await;
        let made = answer.header("traceparent").unwrap().to_owned();
        let trace = made.split('-').nth(1).unwrap().to_owned();
        assert_eq!(trace.len(), 32, "{made}");
        receiver
            .wait_for(1, |call| call.header("traceparent").contains(&trace))
            .await;
    }
}
