//! Conditions, delays, waits for events and records, as they are saved, executed and read.

use std::time::{Duration, Instant};

use axum::http::{HeaderMap, StatusCode};
use harness::{Organization, Receiver, System};
use serde_json::{Value, json};

use super::active;
use crate::{SHAPE, system};

fn states(run: &Value) -> Vec<(String, String)> {
    let steps = run["steps"].as_array().expect("steps").iter();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    steps
        .map(|step| (text(&step["id"]), text(&step["state"])))
        .collect()
}

fn state(run: &Value, id: &str) -> String {
    let found = states(run).into_iter().find(|(step, _)| step == id);
    found.expect("the step").1
}

fn output<'r>(run: &'r Value, id: &str) -> &'r Value {
    let mut steps = run["steps"].as_array().expect("steps").iter();
    &steps.find(|step| step["id"] == id).expect("the step")["output"]
}

async fn run(org: &Organization<'_>, workflow: &str, payload: &Value) -> Value {
    let run_id = org.trigger(workflow, payload).await;
    org.ended(&run_id).await
}

#[tokio::test]
async fn a_condition_takes_one_way_and_skips_the_other() {
    let org = system().await.organization().await;
    let workflow = org
        .workflow(&active(&json!([
            {"id": "start", "type": "TRIGGER", "next": ["hot"]},
            {"id": "hot", "type": "CONDITION", "if": "trigger.score >= 80",
             "then": ["call"], "else": ["mail"]},
            {"id": "call", "type": "NOTIFY", "event": "call", "next": ["later", "end"]},
            {"id": "later", "type": "NOTIFY", "event": "later"},
            {"id": "mail", "type": "NOTIFY", "event": "mail", "next": ["end"]},
            {"id": "end", "type": "NOTIFY", "event": "end", "join": "all"},
        ])))
        .await;
    let hot = run(&org, &workflow, &json!({"score": 80})).await;
    assert_eq!(hot["state"], "SUCCEEDED", "{hot}");
    assert_eq!(state(&hot, "mail"), "SKIPPED");
    assert_eq!(state(&hot, "end"), "SUCCEEDED");
    let cold = run(&org, &workflow, &json!({"score": 79})).await;
    assert_eq!(cold["state"], "SUCCEEDED", "{cold}");
    for (step, expected) in [
        ("call", "SKIPPED"),
        ("later", "SKIPPED"),
        ("mail", "SUCCEEDED"),
        ("end", "SUCCEEDED"),
    ] {
        assert_eq!(state(&cold, step), expected, "{step}");
    }
}

#[tokio::test]
async fn what_is_not_taken_reads_as_skipped_while_the_run_goes_on() {
    let org = system().await.organization().await;
    let workflow = org
        .workflow(&active(&json!([
            {"id": "start", "type": "TRIGGER", "next": ["hot"]},
            {"id": "hot", "type": "CONDITION", "if": "false", "then": ["call"], "else": ["later"]},
            {"id": "call", "type": "NOTIFY", "event": "call", "next": ["after"]},
            {"id": "after", "type": "NOTIFY", "event": "after"},
            {"id": "later", "type": "DELAY", "seconds": 3600, "next": ["end"]},
            {"id": "end", "type": "NOTIFY", "event": "end"},
        ])))
        .await;
    let run_id = org.trigger(&workflow, &json!({})).await;
    let path = format!("/api/v1/runs/{run_id}");
    let waiting = org.until(&path, |run| run["state"] == "WAITING").await;
    let expected = [
        ("start", "SUCCEEDED"),
        ("hot", "SUCCEEDED"),
        ("call", "SKIPPED"),
        ("after", "SKIPPED"),
        ("later", "WAITING"),
        ("end", "QUEUED"),
    ];
    let expected = expected.map(|(id, state)| (id.to_owned(), state.to_owned()));
    assert_eq!(states(&waiting), expected);
    let cancel = org.admin.post(&format!("{path}/cancel"), &json!({})).await;
    cancel.ok(202);
    let ended = org.ended(&run_id).await;
    assert_eq!(state(&ended, "later"), "CANCELLED");
}

#[tokio::test]
async fn a_delay_lasts_as_long_as_it_says() {
    let org = system().await.organization().await;
    let workflow = org
        .workflow(&active(&json!([
            {"id": "start", "type": "TRIGGER", "next": ["later"]},
            {"id": "later", "type": "DELAY", "seconds": 1, "next": ["end"]},
            {"id": "end", "type": "NOTIFY", "event": "end"},
        ])))
        .await;
    let began = Instant::now();
    let run = run(&org, &workflow, &json!({})).await;
    assert!(began.elapsed() >= Duration::from_secs(1));
    assert_eq!(run["state"], "SUCCEEDED", "{run}");
    let path = format!("/api/v1/workflows/{workflow}");
    let definition = org.until(&path, |_| true).await;
    assert_eq!(definition["steps"][1]["seconds"], json!(1));
}

#[tokio::test]
async fn a_record_is_written_as_by_the_api() {
    let org = system().await.organization().await;
    let workflow = org
        .workflow(&active(&json!([
            {"id": "start", "type": "TRIGGER", "next": ["save"]},
            {"id": "save", "type": "RECORD", "kind": "contacts", "recordId": "{{ trigger.id }}",
             "data": {"firstName": "{{ trigger.name }}", "email": "{{ trigger.email }}"}},
        ])))
        .await;
    let ada = json!({"id": "c-1", "name": "Ada", "email": "ada@example.org"});
    let created = run(&org, &workflow, &ada).await;
    let expected = json!({"id": "c-1", "status": "created"});
    assert_eq!(output(&created, "save"), &expected, "{created}");
    let path = "/api/v1/records/contacts/c-1";
    let read = org.until(path, |read| read["firstName"] == "Ada").await;
    assert_eq!(read["email"], "ada@example.org");
    let again = run(&org, &workflow, &ada).await;
    assert_eq!(output(&again, "save")["status"], "unchanged");
    let eve = json!({"id": "c-1", "name": "Eve", "email": null});
    let updated = run(&org, &workflow, &eve).await;
    assert_eq!(output(&updated, "save")["status"], "updated");
    org.until(path, |read| read["firstName"] == "Eve").await;
    let wrong = json!({"id": "c-2", "name": 7, "email": null});
    let refused = run(&org, &workflow, &wrong).await;
    assert_eq!(refused["state"], "FAILED");
    let error = refused["error"].as_str().expect("an error");
    assert!(
        error.contains("save") && error.contains("firstName"),
        "{error}"
    );
    assert_eq!(
        org.admin.get("/api/v1/records/contacts/c-2").await.status,
        404
    );
}

fn waiting(timeout: f64) -> Value {
    active(&json!([
        {"id": "start", "type": "TRIGGER", "next": ["reply"]},
        {"id": "reply", "type": "WAIT_FOR_EVENT", "event": "contact.updated",
         "match": "data.email == trigger.email", "timeoutSeconds": timeout,
         "next": ["yes"], "onTimeout": ["no"]},
        {"id": "yes", "type": "NOTIFY", "event": "yes",
         "data": {"who": "{{ steps.reply.output.event.data.firstName }}"}},
        {"id": "no", "type": "NOTIFY", "event": "no"},
    ]))
}

#[tokio::test]
async fn a_wait_ends_with_the_first_event_that_matches() {
    let org = system().await.organization().await;
    let workflow = org.workflow(&waiting(600.0)).await;
    let path = "/api/v1/records/contacts/c-1";
    let save = async |name: &str, email: &str| {
        let fields = json!({"firstName": name, "email": email});
        assert!(org.admin.put(path, &fields).await.status.is_success());
    };
    save("Old", "ada@example.org").await;
    let run_id = org
        .trigger(&workflow, &json!({"email": "ada@example.org"}))
        .await;
    let run_path = format!("/api/v1/runs/{run_id}");
    let waits = org.until(&run_path, |run| run["state"] == "WAITING").await;
    assert_eq!(state(&waits, "reply"), "WAITING");
    save("Eve", "eve@example.org").await;
    save("Ada", "ada@example.org").await;
    save("Late", "ada@example.org").await;
    let run = org.ended(&run_id).await;
    assert_eq!(run["state"], "SUCCEEDED", "{run}");
    let event = &output(&run, "reply")["event"];
    assert_eq!(event["type"], "contact.updated");
    assert_eq!(event["data"]["firstName"], "Ada");
    assert!(event["id"].is_string() && event["time"].is_string());
    assert_eq!(
        (state(&run, "yes"), state(&run, "no")),
        ("SUCCEEDED".to_owned(), "SKIPPED".to_owned())
    );
}

#[tokio::test]
async fn a_wait_that_nothing_ends_goes_on_by_its_timeout() {
    let org = system().await.organization().await;
    let workflow = org.workflow(&waiting(0.5)).await;
    let run = run(&org, &workflow, &json!({"email": "ada@example.org"})).await;
    assert_eq!(run["state"], "SUCCEEDED", "{run}");
    assert_eq!(
        (state(&run, "yes"), state(&run, "no")),
        ("SKIPPED".to_owned(), "SUCCEEDED".to_owned())
    );
}

#[tokio::test]
async fn delays_and_waits_outlive_a_kill() {
    let mut system = System::start_alone(SHAPE, &[]).await;
    let org = system.organization().await;
    let delayed = org
        .workflow(&active(&json!([
            {"id": "start", "type": "TRIGGER", "next": ["later"]},
            {"id": "later", "type": "DELAY", "seconds": 5},
        ])))
        .await;
    let waits = org.workflow(&waiting(600.0)).await;
    let path = "/api/v1/records/contacts/c-1";
    let fields = |name: &str| json!({"firstName": name, "email": "ada@example.org"});
    org.admin.put(path, &fields("Old")).await.ok(201);
    let first = org.trigger(&delayed, &json!({})).await;
    let second = org
        .trigger(&waits, &json!({"email": "ada@example.org"}))
        .await;
    for run in [&first, &second] {
        let path = format!("/api/v1/runs/{run}");
        org.until(&path, |run| run["state"] == "WAITING").await;
    }
    let (id, admin, key) = (org.id.clone(), org.admin.clone(), org.key.clone());
    system.crash();
    system.revive().await;
    let org = Organization {
        system: &system,
        id,
        admin,
        key,
    };
    let updated = org.admin.put(path, &fields("Ada")).await;
    assert!(updated.status.is_success(), "{}", updated.status);
    for run in [&first, &second] {
        assert_eq!(org.ended(run).await["state"], "SUCCEEDED");
    }
}

#[tokio::test]
async fn a_definition_that_cannot_be_carried_out_is_refused_with_every_place() {
    let org = system().await.organization().await;
    let definition = active(&json!([
        {"id": "start", "type": "TRIGGER", "on": {"event": "lead.craeted", "filter": "data.a +"},
         "next": ["hot"]},
        {"id": "hot", "type": "CONDITION", "if": "trigger.score >=", "then": ["later", "gone"]},
        {"id": "later", "type": "DELAY", "seconds": -1},
        {"id": "save", "type": "RECORD", "kind": "people", "data": {}},
    ]));
    let refused = org.admin.put("/api/v1/workflows/w", &definition).await;
    assert_eq!(refused.status, 400);
    let error = refused.json()["error"].as_str().expect("error").to_owned();
    for place in [
        "steps[0].on.event: ",
        "steps[0].on.filter: ",
        "steps[1].if: ",
        "steps[2].seconds: ",
        "steps[3].kind: ",
    ] {
        assert!(error.contains(place), "{place} in {error}");
    }
}

#[tokio::test]
async fn a_step_may_go_on_beside_a_wait() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    receiver.reply(|_| (StatusCode::OK, HeaderMap::new(), String::new()));
    let workflow = org
        .workflow(&active(&json!([
            {"id": "start", "type": "TRIGGER", "next": ["pause", "call"]},
            {"id": "pause", "type": "DELAY", "seconds": 0.5, "next": ["end"]},
            {"id": "call", "type": "HTTP", "method": "POST", "url": receiver.url("/"),
             "next": ["end"]},
            {"id": "end", "type": "NOTIFY", "event": "end", "join": "all"},
        ])))
        .await;
    let run = run(&org, &workflow, &json!({})).await;
    assert_eq!(run["state"], "SUCCEEDED", "{run}");
    assert_eq!(receiver.received().len(), 1);
}

#[tokio::test]
async fn data_that_templates_nest_too_deep_fails_the_step_and_says_so() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    let within = |inner: Value| (0..60).fold(inner, |inner, _| json!([inner]));
    let data = within(json!("{{ trigger.deep }}"));
    for step in [
        json!({"id": "deep", "type": "NOTIFY", "event": "deep", "data": {"a": data}}),
        json!({"id": "deep", "type": "HTTP", "method": "POST", "url": receiver.url("/"),
               "body": data}),
        json!({"id": "deep", "type": "RECORD", "kind": "orders", "data": {"plan": data}}),
    ] {
        let start = json!({"id": "start", "type": "TRIGGER", "next": ["deep"]});
        let workflow = org.workflow(&active(&json!([start, step]))).await;
        let run = run(&org, &workflow, &json!({"deep": within(json!(1))})).await;
        assert_eq!(run["state"], "FAILED", "{run}");
        let error = run["error"].as_str().expect("an error");
        assert!(error.contains("100 levels"), "{error}");
    }
    assert!(receiver.received().is_empty());
}
