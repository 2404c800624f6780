//! Runs ended per second, over a bare loop that does the same appends and calls, and how soon a run
//! starts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use event_log::{EventLog, Item};
use schemas::{AggregateType, Event, Log};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::accept::put_workflow;
use crate::bare_runs::{self, Parts};
use crate::load;
use crate::report::Report;
use crate::system::{System, until_ready};
use crate::webhook::receive;

const CONNECTIONS: usize = 64;
const EVENTS_AT_ONCE: usize = 1_000;
/// Interval between queries of the log's end, which cost the server next to nothing. Reading every
/// event meanwhile would take a sixth of the machine.
const LOOK: Duration = Duration::from_millis(5);
const TIMEOUT: Duration = Duration::from_mins(2);
/// Triggers per second for measuring how soon a run starts.
const STEADY: f64 = 1_000.0;
const BODY: &str = r#"{"email":"ada@example.com","score":81}"#;

/// A run that consists only of its first step.
pub(crate) const ONE_STEP: Parts = Parts {
    first: 4,
    call: None,
};

/// A measurement: a name, the steps after the first, the parts of a run, and the aim.
type Work = (&'static str, Vec<Value>, Parts, &'static str);

/// Queues runs and then lets a runner execute them, for workflows with more and more steps.
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
    let log = system.log().await;
    let parts = |first, second| Parts {
        first,
        call: (second > 0).then_some((receiver, second)),
    };
    let works: [Work; 3] = [
        ("one step", vec![], ONE_STEP, "8,000, at least 0.5"),
        (
            "a message",
            vec![tell.clone()],
            parts(7, 0),
            "6,000, at least 0.5",
        ),
        (
            "a call and a message",
            vec![call, tell],
            parts(5, 4),
            "3,500, at least 0.5",
        ),
    ];
    for (nth, (what, steps, parts, aim)) in works.into_iter().enumerate() {
        let id = format!("w{nth}");
        put_workflow(system, &org, &id, &definition(steps)).await;
        let bare = bare_runs::rate(system, parts, time).await;
        let accepted = load::run(system.addr(), CONNECTIONS, time, "202", triggers(&id, &key));
        let accepted = accepted.await;
        assert_eq!(accepted.other, 0, "every trigger is accepted");
        let ours = ended(system, &log, (accepted.answered, parts), 1).await;
        let what = format!("runs of {what} ended, over a bare loop of the same appends and calls");
        report.rate(&what, &[(ours, bare)], aim);
    }
    begun(system, &log, triggers("w0", &key), time, report).await;
}

fn triggers(workflow: &str, key: &str) -> Arc<Vec<Vec<u8>>> {
    let path = format!("/api/v1/workflows/{workflow}/trigger");
    Arc::new(vec![load::post(&path, key, BODY)])
}

fn definition(steps: Vec<Value>) -> Value {
    let next: Vec<&Value> = steps.iter().take(1).map(|step| &step["id"]).collect();
    let start = json!({ "id": "start", "type": "TRIGGER", "next": next });
    let mut all = vec![start];
    all.extend(steps);
    json!({ "name": "Bench", "status": "ACTIVE", "steps": all })
}

/// The rate at which `count` waiting runs end, measured from a runner's first event.
pub(crate) async fn ended(
    system: &System,
    log: &EventLog,
    (count, parts): (u64, Parts),
    runners: usize,
) -> f64 {
    let before = end(log).await;
    let runners: Vec<_> = (0..runners)
        .map(|_| system.run("workflow-runner"))
        .collect();
    until(log, before + 1).await;
    let began = Instant::now();
    until(log, before + count * parts.events() as u64).await;
    let took = began.elapsed();
    drop(runners);
    let succeeded = count_since(log, before).await;
    assert_eq!(succeeded, count, "every run ends well");
    #[expect(clippy::cast_precision_loss, reason = "counts of a bench are small")]
    let count = count as f64;
    count / took.as_secs_f64()
}

async fn end(log: &EventLog) -> u64 {
    log.end(Log::Events).await.expect("an end").sequence()
}

async fn until(log: &EventLog, sequence: u64) {
    let deadline = Instant::now() + TIMEOUT;
    while end(log).await < sequence {
        assert!(Instant::now() < deadline, "every run ends");
        sleep(LOOK).await;
    }
}

/// Number of runs that succeeded after a position in the log.
async fn count_since(log: &EventLog, after: u64) -> u64 {
    let mut succeeded = 0;
    each_since(log, after, |event, _, _| {
        succeeded += u64::from(matches!(event, Event::RunSucceeded(_)));
    })
    .await;
    succeeded
}

/// Iterates over the events of runs after a position in the log.
async fn each_since(log: &EventLog, after: u64, mut see: impl FnMut(&Event, &str, DateTime<Utc>)) {
    let runs = [AggregateType::Run];
    let mut tail = log.tail(Log::Events, after, &runs).await.expect("a tail");
    while !tail.caught_up() {
        for item in tail.next(EVENTS_AT_ONCE).await.expect("events").items {
            let Item::Event(recorded) = item else {
                panic!("every event can be read");
            };
            see(&recorded.event, &recorded.stream.id, recorded.time);
        }
    }
}

/// The delay from a trigger's decision, which is before its acceptance, to the start of its first
/// step.
async fn begun(
    system: &System,
    log: &EventLog,
    triggers: Arc<Vec<Vec<u8>>>,
    time: Duration,
    report: &mut Report,
) {
    let runner = system.run("workflow-runner");
    until_ready(runner.addr).await;
    let each = 1 + ONE_STEP.events() as u64;
    let steady = async |time| {
        let from = end(log).await;
        let accepted = load::run_paced(system.addr(), 32, STEADY, time, triggers.clone()).await;
        until(log, from + accepted * each).await;
        from
    };
    steady(Duration::from_secs(1)).await;
    let after = steady(time).await;
    drop(runner);
    let mut triggered = std::collections::HashMap::new();
    let mut waited = Vec::new();
    each_since(log, after, |event, run, at| match event {
        Event::WorkflowTriggered(_) => drop(triggered.insert(run.to_owned(), at)),
        Event::RunStepStarted(_) => {
            let began = triggered.remove(run).map(|since| at - since);
            waited.extend(began.and_then(|began| began.to_std().ok()));
        }
        _ => {}
    })
    .await;
    assert!(triggered.is_empty(), "every run begins");
    waited.sort_unstable();
    let at = |percent: usize| waited[(waited.len() - 1) * percent / 100];
    for (percent, aim) in [(50, ""), (99, "under 5 ms")] {
        let what = format!("trigger decided → first step begun at 1,000/s, p{percent}");
        report.time(&what, at(percent), aim);
    }
}
