//! No organization can block another: calls and receivers that hang, and workflows that trigger
//! each other.

use std::time::Duration;

use futures::future::join_all;
use harness::{Organization, Received, Receiver, System};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::deliveries::webhook;
use super::{active, ndjson, only_begins};
use crate::{SHAPE, system};

/// Number of runs that one cause may lead to here.
const BUDGET: usize = 20;

/// A system whose webhook receivers have a minute to answer.
async fn patient() -> &'static System {
    static SYSTEM: OnceCell<System> = OnceCell::const_new();
    let settings = [
        ("WAYPOST_WEBHOOK_TIMEOUT_SECONDS", "60"),
        ("WAYPOST_TRIGGERS_PER_CAUSE", "20"),
    ];
    SYSTEM
        .get_or_init(async || System::start(SHAPE, &settings).await)
        .await
}

/// A receiver that accepts requests and never answers.
async fn silent() -> Receiver {
    let receiver = Receiver::start().await;
    receiver.delay(Duration::from_hours(1));
    receiver
}

fn calling(url: &str) -> Value {
    active(&json!([
        {"id": "start", "type": "TRIGGER", "next": ["call"]},
        {"id": "call", "type": "HTTP", "url": url, "timeoutSeconds": 120,
         "retry": {"maxAttempts": 1}},
    ]))
}

#[tokio::test]
async fn calls_that_hang_keep_no_other_organizations_run_from_ending() {
    let system = patient().await;
    let silent = silent().await;
    let crowd = [system.organization().await, system.organization().await];
    for org in &crowd {
        let workflow = org.workflow(&calling(&silent.url("/"))).await;
        let nothing = json!({});
        for _ in 0..6 {
            let begun = (0..50).map(|_| org.trigger(&workflow, &nothing));
            join_all(begun).await;
        }
    }
    silent.wait_for(512, |_| true).await;
    let (org, receiver) = (system.organization().await, Receiver::start().await);
    let workflow = org.workflow(&calling(&receiver.url("/"))).await;
    let run = org.trigger(&workflow, &json!({})).await;
    assert_eq!(org.ended(&run).await["state"], "SUCCEEDED");
    // Its own runs are not held up either: every call has been made.
    silent.wait_for(600, |_| true).await;
    let workflow = crowd[0].workflow(&only_begins()).await;
    let run = crowd[0].trigger(&workflow, &json!({})).await;
    assert_eq!(crowd[0].ended(&run).await["state"], "SUCCEEDED");
}

#[tokio::test]
async fn endpoints_that_hang_hold_up_no_others() {
    let system = patient().await;
    let (silent, receiver) = (silent().await, Receiver::start().await);
    let (slow, other) = (system.organization().await, system.organization().await);
    for _ in 0..16 {
        webhook(&slow, &silent.url("/"), &["lead.created"]).await;
    }
    let leads = (0..40).map(|nth| json!({"id": format!("l-{nth}"), "name": "Ada"}));
    let lines = ndjson(leads);
    let sent = slow
        .admin
        .post_bytes("/api/v1/records/leads", "application/x-ndjson", lines);
    assert_eq!(sent.await.status, 200);
    silent.wait_for(200, |_| true).await;
    let lead = json!({"id": "l-1", "name": "Ada"});
    webhook(&other, &receiver.url("/other"), &["lead.*"]).await;
    let written = other.admin.post("/api/v1/records/leads", &lead).await;
    written.ok(201);
    receiver.wait_for(1, |call| call.path == "/other").await;
    // The quick one of the same organization is not held up either.
    webhook(&slow, &receiver.url("/own"), &["lead.updated"]).await;
    let change = json!({"name": "Eva"});
    let changed = slow.admin.put("/api/v1/records/leads/l-1", &change).await;
    changed.ok(200);
    receiver.wait_for(1, |call| call.path == "/own").await;
}

async fn runs(org: &Organization<'_>, workflow: &str) -> Vec<Value> {
    let path = format!("/api/v1/workflows/{workflow}/runs?limit=100");
    // The first read may come before the workflow is projected.
    let list = org.until(&path, |_| true).await;
    list["data"].as_array().expect("runs").clone()
}

#[tokio::test]
async fn a_workflow_that_triggers_itself_thrice_ends_at_its_budget_and_is_reported() {
    let org = patient().await.organization().await;
    let receiver = Receiver::start().await;
    webhook(&org, &receiver.url("/"), &["workflow.not_triggered"]).await;
    let tell = |id: &str| json!({"id": id, "type": "NOTIFY", "event": "again"});
    let workflow = org
        .workflow(&active(&json!([
            {"id": "start", "type": "TRIGGER", "on": {"event": "custom.again"},
             "next": ["a", "b", "c"]},
            tell("a"), tell("b"), tell("c"),
        ])))
        .await;
    // It also listens to the event that reports this, which is not a way around the limit.
    let alerted = org
        .workflow(&active(&json!([
            {"id": "start", "type": "TRIGGER", "on": {"event": "workflow.*"}},
        ])))
        .await;
    let first = org.trigger(&workflow, &json!({})).await;
    // Some of them may reach the last hop before.
    let of_runs = |call: &Received| call.json()["data"]["reason"] == "runs";
    let told = receiver.wait_for(1, of_runs).await.remove(0).json();
    assert_eq!(told["type"], "workflow.not_triggered");
    let data = &told["data"];
    assert_eq!(data["limit"], BUDGET);
    assert!(data["workflowId"] == json!(workflow) || data["workflowId"] == json!(alerted));
    assert_eq!(data["causeId"], first);
    let all = || async {
        let mut found = runs(&org, &workflow).await;
        found.extend(runs(&org, &alerted).await);
        found
    };
    let ended = harness::eventually("every run to end", async || {
        let found = all().await;
        let over = found.iter().all(|run| !run["endedAt"].is_null());
        (over && found.len() > BUDGET).then_some(found)
    });
    // The first one on its own, and as many as the budget allows.
    assert_eq!(ended.await.len(), 1 + BUDGET);
    let feed = "/api/v1/events?types=workflow.not_triggered";
    let feed = org.admin.get(feed).await.text();
    let told = feed.lines().count();
    assert!((1..=6).contains(&told), "{feed}");
    assert_eq!(all().await.len(), 1 + BUDGET);
    // Another cause has its own budget.
    org.trigger(&workflow, &json!({})).await;
    org.until(&format!("/api/v1/workflows/{workflow}/runs"), |list| {
        list["total"].as_u64() > Some(1 + BUDGET as u64)
    })
    .await;
}

/// When each event of a type was recorded, according to the organization's feed.
async fn times(org: &Organization<'_>, event_type: &str) -> Vec<String> {
    let feed = format!("/api/v1/events?types={event_type}");
    let feed = org.admin.get(&feed).await.text();
    let lines = feed.lines().map(|line| {
        let event: Value = serde_json::from_str(line).expect("an event");
        event["time"].as_str().expect("a time").to_owned()
    });
    lines.collect()
}

#[tokio::test]
async fn a_flood_of_events_that_start_runs_holds_up_no_others_runs() {
    const FLOOD: usize = 60;
    let settings = [("WAYPOST_RUNS_EVENT_CONCURRENCY", "2")];
    let system = System::start(SHAPE, &settings).await;
    let (many, few) = (system.organization().await, system.organization().await);
    // Each of its runs is more work than starting it, so they queue in the runner.
    let told: Vec<String> = (0..10).map(|nth| format!("tell-{nth}")).collect();
    let start = json!({"id": "start", "type": "TRIGGER", "on": {"event": "lead.created"},
        "next": told});
    let tell = |id: &String| json!({"id": id, "type": "NOTIFY", "event": "welcomed"});
    let steps: Vec<_> = std::iter::once(start)
        .chain(told.iter().map(tell))
        .collect();
    let welcome = active(&json!(steps));
    many.workflow(&welcome).await;
    let (by_event, by_request) = (
        few.workflow(&welcome).await,
        few.workflow(&only_begins()).await,
    );
    let leads = (0..FLOOD).map(|nth| json!({"id": format!("l-{nth}"), "name": "Ada"}));
    let leads = ndjson(leads);
    let path = "/api/v1/records/leads";
    let sent = many.admin.post_bytes(path, "application/x-ndjson", leads);
    assert_eq!(sent.await.status, 200);
    // Some of them have started: the others wait.
    harness::eventually("runs to begin", async || {
        (!times(&many, "run.started").await.is_empty()).then_some(())
    })
    .await;
    let lead = json!({"id": "l-1", "name": "Eva"});
    few.admin.post(path, &lead).await.ok(201);
    let run = few.trigger(&by_request, &json!({})).await;
    assert_eq!(few.ended(&run).await["state"], "SUCCEEDED");
    let list = format!("/api/v1/workflows/{by_event}/runs");
    let begun = few.until(&list, |list| list["total"] == 1);
    let begun = begun.await["data"][0]["runId"].clone();
    few.ended(begun.as_str().expect("a run")).await;
    let mut ended = times(&few, "run.succeeded").await;
    ended.sort();
    let ended = ended.pop().expect("two ends");
    let all = harness::eventually("the flood to end", async || {
        let begun = times(&many, "run.started").await;
        (begun.len() == FLOOD).then_some(begun)
    });
    let later = all.await.into_iter().filter(|begun| *begun > ended).count();
    // In log order there would be none: the other's lead came after all of these.
    assert!(later > FLOOD / 10, "{later} of {FLOOD} began later");
}

#[tokio::test]
async fn a_workflow_that_calls_its_own_trigger_ends() {
    let org = system().await.organization().await;
    let id = format!("w-{}", uuid::Uuid::new_v4().simple());
    let path = format!("/api/v1/workflows/{id}/trigger");
    let url = format!("{}{path}", org.admin.base());
    let definition = active(&json!([
        {"id": "start", "type": "TRIGGER", "next": ["call"]},
        {"id": "call", "type": "HTTP", "method": "POST", "url": url,
         "headers": {"Authorization": format!("Bearer {}", org.key), "Waypost-Cause": "1.0.mine"},
         "retry": {"maxAttempts": 1}},
    ]));
    let saved = format!("/api/v1/workflows/{id}");
    org.admin.put(&saved, &definition).await.ok(200);
    org.trigger(&id, &json!({})).await;
    let failed = format!("/api/v1/workflows/{id}/runs?state=FAILED");
    let failed = org.until(&failed, |list| list["total"] != 0).await;
    let error = failed["data"][0]["error"].as_str().expect("an error");
    assert!(error.contains("409") && error.contains("8 runs"), "{error}");
    // The first, and one for each hop.
    let all = harness::eventually("every run to end", async || {
        let found = runs(&org, &id).await;
        let over = found.iter().all(|run| !run["endedAt"].is_null());
        over.then_some(found)
    });
    assert_eq!(all.await.len(), 9);
}

#[tokio::test]
async fn what_a_receiver_passes_on_goes_on_counting() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    webhook(&org, &receiver.url("/hook"), &["run.succeeded"]).await;
    let workflow = org.workflow(&only_begins()).await;
    org.trigger(&workflow, &json!({})).await;
    let path = format!("/api/v1/workflows/{workflow}/trigger");
    // A receiver that answers each webhook with a trigger, and passes the cause on.
    for hop in 1..=9 {
        let calls = receiver.wait_for(hop, |_| true).await;
        let cause = calls[hop - 1].header("waypost-cause").to_owned();
        let request = org.admin.request(reqwest::Method::POST, &path);
        let answer = harness::Answer::to(request.header("Waypost-Cause", cause)).await;
        assert_eq!(answer.status, if hop <= 8 { 202 } else { 409 }, "hop {hop}");
    }
    // A made-up cause does not count.
    let request = org.admin.request(reqwest::Method::POST, &path);
    let made_up = request.header("Waypost-Cause", "1.9.0.0.x.y");
    assert_eq!(harness::Answer::to(made_up).await.status, 202);
}
