//! Runs ended per second, over triggers accepted per second: whether the runner keeps up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use event_log::{EventLog, Item, Keyring, LogSettings};
use schemas::{AggregateType, Event, Log};
use serde_json::{Value, json};

use crate::accept::put_workflow;
use crate::load;
use crate::report::Report;
use crate::system::System;
use crate::webhook::receive;

const CONNECTIONS: usize = 64;
const EVENTS_AT_ONCE: usize = 1_000;

/// Has runs wait for a runner, and then carried out, of workflows with more and more steps.
pub(crate) async fn measure(system: &System, time: Duration, report: &mut Report) {
    let (org, key) = system.organization().await;
    let router = axum::Router::new().fallback(async || ());
    let receiver = receive(router).await;
    let call = json!({
        "id": "call", "type": "HTTP", "method": "POST", "url": format!("http://{receiver}/"),
        "body": { "score": "{{ trigger.score }}" }, "next": ["tell"],
    });
    let tell = json!({
        "id": "tell", "type": "NOTIFY", "event": "bench",
        "data": { "score": "{{ trigger.score }}" },
    });
    let log = LogSettings::at(system.servers.nats_url());
    let log = EventLog::connect(&log, Keyring::load(system.home()).expect("keys")).await;
    let log = log.expect("a log");
    let works = [
        ("runs of one step", vec![]),
        ("runs with a message", vec![tell.clone()]),
        ("runs with a call and a message", vec![call, tell]),
    ];
    for (nth, (what, steps)) in works.into_iter().enumerate() {
        let id = format!("w{nth}");
        put_workflow(system, &org, &id, &definition(steps)).await;
        let path = format!("/api/v1/workflows/{id}/trigger");
        let body = r#"{"email":"ada@example.com","score":81}"#;
        let requests = Arc::new(vec![load::post(&path, &key, body)]);
        let after = log.end(Log::Events).await.expect("an end").sequence();
        let accepted = load::run(system.addr(), CONNECTIONS, time, "202", requests).await;
        assert_eq!(accepted.other, 0, "every trigger is accepted");
        let runner = system.run("workflow-runner");
        let ended = ended(&log, after, accepted.answered).await;
        drop(runner);
        let what = format!("{what} ended, over triggers accepted");
        report.rate(&what, &[(ended, accepted.rate())], "");
    }
}

fn definition(steps: Vec<Value>) -> Value {
    let next: Vec<&Value> = steps.iter().take(1).map(|step| &step["id"]).collect();
    let start = json!({ "id": "start", "type": "TRIGGER", "next": next });
    let mut all = vec![start];
    all.extend(steps);
    json!({ "name": "Bench", "status": "ACTIVE", "steps": all })
}

/// The rate at which so many runs end, from the first event of a runner on.
async fn ended(log: &EventLog, after: u64, count: u64) -> f64 {
    let runs = [AggregateType::Run];
    let mut tail = log.tail(Log::Events, after, &runs).await.expect("a tail");
    let (mut began, mut ended) = (None, 0_u32);
    while u64::from(ended) < count {
        for item in tail.next(EVENTS_AT_ONCE).await.expect("events").items {
            let Item::Event(recorded) = item else {
                panic!("every event can be read");
            };
            match recorded.event {
                Event::WorkflowTriggered(_) => {}
                Event::RunSucceeded(_) => ended += 1,
                _ => drop(began.get_or_insert_with(Instant::now)),
            }
        }
    }
    let began = began.expect("runs have begun");
    f64::from(ended) / began.elapsed().as_secs_f64()
}
