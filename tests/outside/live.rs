//! `/ws`: the events of a subscription, and how it is resumed.

use std::collections::HashSet;

use harness::{Organization, Socket};
use serde_json::{Value, json};

use super::{active, only_begins};
use crate::system;

async fn organization_with_workflow() -> (Organization<'static>, String) {
    let org = system().await.organization().await;
    let workflow = org.workflow(&only_begins()).await;
    (org, workflow)
}

/// The next events of a subscription up to the one that ends a run.
async fn until_end_of(socket: &mut Socket, run_id: &str) -> Vec<Value> {
    let mut events = Vec::new();
    loop {
        let frame = socket.next_of("event").await;
        let event = &frame["event"];
        let ended = event["type"] == "run.succeeded" && event["data"]["runId"] == run_id;
        events.push(frame);
        if ended {
            return events;
        }
    }
}

fn types(events: &[Value]) -> Vec<&str> {
    let types = events.iter().map(|frame| &frame["event"]["type"]);
    types.map(|kind| kind.as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_run_is_shown_as_it_goes_on() {
    let (org, workflow) = organization_with_workflow().await;
    let mut socket = Socket::open(org.system, &org.key).await;
    socket.subscribe("s1", "runs", None).await;
    let run_id = org.trigger(&workflow, &json!({"lead": 1})).await;
    let events = until_end_of(&mut socket, &run_id).await;
    assert_eq!(
        types(&events),
        [
            "workflow.triggered",
            "run.started",
            "run.step_started",
            "run.step_succeeded",
            "run.succeeded"
        ]
    );
    let mut positions = HashSet::new();
    for frame in &events {
        let mut fields: Vec<_> = frame.as_object().unwrap().keys().collect();
        fields.sort();
        assert_eq!(fields, ["channel", "event", "id", "position", "type"]);
        assert_eq!(
            (&frame["id"], &frame["channel"]),
            (&json!("s1"), &json!("runs"))
        );
        assert!(positions.insert(frame["position"].as_str().unwrap()));
        let event = frame["event"].as_object().unwrap();
        let mut fields: Vec<_> = event.keys().collect();
        fields.sort();
        assert_eq!(fields, ["data", "time", "type"]);
        chrono::DateTime::parse_from_rfc3339(event["time"].as_str().unwrap()).unwrap();
        assert_eq!(event["data"]["runId"], run_id);
        assert_eq!(event["data"]["workflowId"], workflow);
    }
    assert_eq!(events[0]["event"]["data"]["triggerPayload"]["lead"], 1);
    // Reads accept a position of the stream.
    let position = events[4]["position"].as_str().unwrap();
    let run = format!("/api/v1/runs/{run_id}");
    let run = org.admin.get_at(&run, position).await.ok(200);
    assert_eq!(run["state"], "SUCCEEDED");
}

#[tokio::test]
async fn every_fact_of_the_organization_is_shown_to_who_asks_for_events() {
    let org = system().await.organization().await;
    let mut socket = Socket::open(org.system, &org.key).await;
    socket.subscribe("all", "events", None).await;
    let told = active(&json!([
        {"id": "start", "type": "TRIGGER", "next": ["tell"]},
        {"id": "tell", "type": "NOTIFY", "event": "hello", "data": {"to": "{{ trigger.to }}"}},
    ]));
    let workflow = org.workflow(&told).await;
    let contact = json!({"id": "c", "email": "a@b.c"});
    org.admin
        .post("/api/v1/records/contacts", &contact)
        .await
        .ok(201);
    org.admin.delete("/api/v1/records/contacts/c").await.ok(204);
    let run_id = org.trigger(&workflow, &json!({"to": ["you"]})).await;
    let events = until_end_of(&mut socket, &run_id).await;
    let found = |kind: &str| {
        let mut events = events.iter().map(|frame| &frame["event"]);
        events.find(|event| event["type"] == kind).expect(kind)
    };
    assert_eq!(found("workflow.saved")["data"]["workflowId"], workflow);
    assert_eq!(found("contact.created")["data"]["email"], "a@b.c");
    assert_eq!(found("contact.deleted")["data"]["id"], "c");
    assert_eq!(found("custom.hello")["data"], json!({"to": ["you"]}));
    assert!(types(&events).contains(&"run.started"));
}

#[tokio::test]
async fn a_socket_has_several_subscriptions_and_ends_them_one_by_one() {
    let (org, workflow) = organization_with_workflow().await;
    let mut socket = Socket::open(org.system, &org.key).await;
    socket.subscribe("a", "runs", None).await;
    socket.subscribe("b", "events", None).await;
    let run_id = org.trigger(&workflow, &json!({})).await;
    let mut seen = HashSet::new();
    while seen.len() < 2 {
        let frame = socket.next_of("event").await;
        if frame["event"]["type"] == "run.succeeded" {
            seen.insert(frame["id"].as_str().unwrap().to_owned());
        }
    }
    let unsubscribe = json!({"type": "unsubscribe", "id": "a"});
    socket.send(&unsubscribe).await;
    // The next request is answered after the unsubscribing.
    socket.send_text("{}").await;
    socket.next_of("error").await;
    let second = org.trigger(&workflow, &json!({})).await;
    let events = until_end_of(&mut socket, &second).await;
    assert!(events.iter().all(|frame| frame["id"] == "b"), "{events:?}");
    assert_ne!(run_id, second);
}

/// Small pseudorandom numbers, the same in every test.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

#[tokio::test]
async fn a_socket_that_is_cut_again_and_again_misses_nothing_and_sees_nothing_twice() {
    const RUNS: usize = 60;
    let (org, workflow) = organization_with_workflow().await;
    let mut chance = Chance(7);
    let mut socket = Socket::open(org.system, &org.key).await;
    let mut last = socket.subscribe("s", "runs", None).await;

    let trigger = async {
        let mut runs = Vec::new();
        for _ in 0..RUNS {
            runs.push(org.trigger(&workflow, &json!({})).await);
        }
        runs
    };
    let watch = async {
        let (mut seen, mut ended) = (Vec::new(), 0);
        while ended < RUNS {
            for _ in 0..chance.below(12) {
                let frame = socket.next().await;
                assert_eq!(frame["type"], "event", "{frame}");
                frame["position"].as_str().unwrap().clone_into(&mut last);
                let event = frame["event"].clone();
                ended += usize::from(event["type"] == "run.succeeded");
                seen.push(event);
                if ended == RUNS {
                    return seen;
                }
            }
            socket.cut();
            socket = Socket::open(org.system, &org.key).await;
            let from = socket.subscribe("s", "runs", Some(&last)).await;
            assert_eq!(from, last, "it goes on where it was");
        }
        seen
    };
    let (runs, seen) = tokio::join!(trigger, watch);
    for run_id in runs {
        let of_run = |event: &&Value| event["data"]["runId"] == *run_id;
        let types: Vec<_> = seen.iter().filter(of_run).map(|e| &e["type"]).collect();
        assert_eq!(
            types,
            [
                "workflow.triggered",
                "run.started",
                "run.step_started",
                "run.step_succeeded",
                "run.succeeded"
            ]
        );
    }
    assert_eq!(seen.len(), RUNS * 5);
}

#[tokio::test]
async fn what_happened_before_is_shown_to_who_asks_for_it() {
    let (org, workflow) = organization_with_workflow().await;
    let marker = "/api/v1/workflows/marker";
    let after = org.admin.put(marker, &only_begins()).await.position();
    let mut runs = Vec::new();
    for _ in 0..10 {
        runs.push(org.trigger(&workflow, &json!({})).await);
    }
    org.ended(&runs[9]).await;
    let mut socket = Socket::open(org.system, &org.key).await;
    assert_eq!(socket.subscribe("s", "runs", Some(&after)).await, after);
    let events = until_end_of(&mut socket, &runs[9]).await;
    let triggered = events
        .iter()
        .filter(|frame| frame["event"]["type"] == "workflow.triggered");
    let triggered: Vec<_> = triggered
        .map(|frame| frame["event"]["data"]["runId"].as_str().unwrap())
        .collect();
    assert_eq!(triggered, runs);
}

#[tokio::test]
async fn another_organizations_events_are_never_seen() {
    let (org, workflow) = organization_with_workflow().await;
    let (other, other_workflow) = organization_with_workflow().await;
    let mut socket = Socket::open(org.system, &org.key).await;
    socket.subscribe("s", "events", None).await;
    let mut late = Socket::open(org.system, &org.key).await;
    for _ in 0..5 {
        let theirs = other.trigger(&other_workflow, &json!({})).await;
        other.ended(&theirs).await;
        org.trigger(&workflow, &json!({})).await;
    }
    let saved = other.admin.put("/api/v1/workflows/x", &only_begins()).await;
    let last = org.trigger(&workflow, &json!({})).await;
    let events = until_end_of(&mut socket, &last).await;
    for frame in &events {
        assert_eq!(frame["event"]["data"]["workflowId"], workflow, "{frame}");
    }
    // Nor by a position from the responses to their commands.
    late.subscribe("s", "events", Some(&saved.position())).await;
    let events = until_end_of(&mut late, &last).await;
    for frame in &events {
        assert_eq!(frame["event"]["data"]["workflowId"], workflow, "{frame}");
    }
}
