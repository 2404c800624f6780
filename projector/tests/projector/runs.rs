//! Runs as they are read.

use crate::support::{World, now, started, triggered};
use schemas::run::{
    Cancelled, Failed, Retried, StepFailed, StepStarted, StepSucceeded, Succeeded, Waiting, Way,
};
use schemas::workflow::{
    Action, Condition, Definition, Delay, Notify, Saved, Status, Step, Trigger,
};
use schemas::{AggregateType, Event, Log};
use serde_json::{Map, Value, json};

fn step(id: &str, action: Action, next: &[&str]) -> Step {
    Step {
        id: id.into(),
        action,
        next: next.iter().map(|id| (*id).into()).collect(),
        join: schemas::workflow::Join::Any,
    }
}

pub(crate) fn saved(version: u32) -> Event {
    let tell = || {
        Action::Notify(Notify {
            event: "told".to_owned(),
            data: Map::new(),
        })
    };
    Event::WorkflowSaved(Saved {
        workflow_id: "w1".into(),
        version,
        definition: Definition {
            name: "Tell".to_owned(),
            status: Status::Active,
            timeout_seconds: 60,
            steps: vec![
                step(
                    "start",
                    Action::Trigger(Trigger::default()),
                    &["tell", "other"],
                ),
                step("tell", tell(), &[]),
                step("other", tell(), &[]),
            ],
        },
    })
}

/// `hot` goes to `tell`, or by way of `later` to `other`.
fn branching(version: u32) -> Event {
    let Event::WorkflowSaved(mut saved) = saved(version) else {
        panic!("not saved");
    };
    let tell = saved.definition.steps[1].action.clone();
    let hot = Action::Condition(Condition {
        test: "trigger.hot".to_owned(),
        then: vec!["tell".into()],
        otherwise: vec!["later".into()],
    });
    saved.definition.steps = vec![
        step("start", Action::Trigger(Trigger::default()), &["hot"]),
        step("hot", hot, &[]),
        step("tell", tell.clone(), &[]),
        step("later", Action::Delay(Delay { seconds: 60.0 }), &["other"]),
        step("other", tell, &[]),
    ];
    Event::WorkflowSaved(saved)
}

fn step_started(attempt: u32) -> Event {
    step_began("tell", attempt)
}

fn step_began(step: &str, attempt: u32) -> Event {
    Event::RunStepStarted(StepStarted {
        run_id: "r1".into(),
        workflow_id: "w1".into(),
        step_id: step.into(),
        attempt,
        input: json!({"n": 1e2}),
    })
}

fn step_succeeded(step: &str, attempt: u32) -> Event {
    step_went(step, attempt, Way::Next)
}

fn step_went(step: &str, attempt: u32, way: Way) -> Event {
    Event::RunStepSucceeded(StepSucceeded {
        run_id: "r1".into(),
        workflow_id: "w1".into(),
        step_id: step.into(),
        attempt,
        way,
        output: json!({"text": "a\0b"}),
    })
}

fn step_failed(retried: bool) -> Event {
    Event::RunStepFailed(StepFailed {
        run_id: "r1".into(),
        workflow_id: "w1".into(),
        step_id: "tell".into(),
        attempt: 1,
        error: "no".to_owned(),
        retry_at: retried.then(now),
    })
}

/// Follows one run event by event; returns its states, and its steps' states at the end.
async fn follow(events: Vec<Event>) -> (Vec<String>, Value) {
    let world = World::new().await;
    let projector = world.start();
    let workflow = world.stream(AggregateType::Workflow, "w1");
    let version = world.append(workflow.clone(), 0, vec![saved(1)]).await;
    let version = world
        .append(workflow.clone(), version, vec![saved(2)])
        .await;
    world.append(workflow, version, vec![branching(3)]).await;
    let mut states = Vec::new();
    let mut at = 0;
    for event in events {
        let stream = world.stream(AggregateType::Run, "r1");
        at = world.append(stream, at, vec![event]).await;
        world.caught_up(Log::Events, at).await;
        let state: String = sqlx::query_scalar("SELECT state FROM runs")
            .fetch_one(&world.pool)
            .await
            .unwrap();
        let counted: Vec<(String, i64)> =
            sqlx::query_as("SELECT state, count FROM totals WHERE kind = 'runs' AND count <> 0")
                .fetch_all(&world.pool)
                .await
                .unwrap();
        assert_eq!(counted, [(state.clone(), 1)]);
        states.push(state);
    }
    let (steps, ended, error): (String, bool, Option<String>) =
        sqlx::query_as("SELECT steps::text, ended_at IS NOT NULL, error FROM runs")
            .fetch_one(&world.pool)
            .await
            .unwrap();
    let last = states.last().map(String::as_str);
    let over = ["SUCCEEDED", "FAILED", "CANCELLED"]
        .map(Some)
        .contains(&last);
    assert_eq!((ended, error.is_some()), (over, last == Some("FAILED")));
    projector.stop().await;
    world.end().await;
    (states, serde_json::from_str(&steps).unwrap())
}

fn of_each(steps: &Value, field: &str) -> Vec<Value> {
    let steps = steps.as_array().unwrap().iter();
    steps.map(|step| step[field].clone()).collect()
}

#[tokio::test]
async fn a_run_reads_with_every_step_and_attempt() {
    let waiting = Event::RunWaiting(Waiting {
        run_id: "r1".into(),
        workflow_id: "w1".into(),
        step_id: "tell".into(),
        until: now(),
    });
    let succeeded = Event::RunSucceeded(Succeeded {
        run_id: "r1".into(),
        workflow_id: "w1".into(),
    });
    let (states, steps) = follow(vec![
        triggered("r1", "w1", 2),
        started("r1", "w1"),
        step_succeeded("start", 1),
        step_started(1),
        step_failed(true),
        waiting,
        step_started(2),
        step_succeeded("tell", 2),
        succeeded,
    ])
    .await;
    assert_eq!(
        states,
        [
            "QUEUED",
            "RUNNING",
            "RUNNING",
            "RUNNING",
            "RUNNING",
            "WAITING",
            "RUNNING",
            "RUNNING",
            "SUCCEEDED"
        ]
    );
    assert_eq!(of_each(&steps, "id"), ["start", "tell", "other"]);
    assert_eq!(of_each(&steps, "type"), ["TRIGGER", "NOTIFY", "NOTIFY"]);
    assert_eq!(
        of_each(&steps, "state"),
        ["SUCCEEDED", "SUCCEEDED", "SKIPPED"]
    );
    let tell = &steps[1];
    assert_eq!(tell["input"], json!({"n": 1e2}));
    assert_eq!(tell["output"], json!({"text": "a\0b"}));
    let attempts = tell["attempts"].as_array().unwrap();
    let errors: Vec<_> = attempts.iter().map(|a| a["error"].clone()).collect();
    assert_eq!(errors, [json!("no"), Value::Null]);
    assert!(
        attempts
            .iter()
            .all(|a| a["startedAt"].is_string() && a["endedAt"].is_string())
    );
    let fields: Vec<_> = tell.as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        fields,
        ["id", "type", "state", "attempts", "input", "output"]
    );
}

#[tokio::test]
async fn nothing_of_an_ended_run_looks_as_if_it_went_on() {
    let failed = Event::RunFailed(Failed {
        run_id: "r1".into(),
        workflow_id: "w1".into(),
        error: "took too long".to_owned(),
    });
    let events = vec![
        triggered("r1", "w1", 1),
        started("r1", "w1"),
        step_started(1),
        failed,
        step_succeeded("tell", 1),
    ];
    let (states, steps) = follow(events).await;
    assert_eq!(states, ["QUEUED", "RUNNING", "RUNNING", "FAILED", "FAILED"]);
    assert_eq!(
        of_each(&steps, "state"),
        ["SKIPPED", "CANCELLED", "SKIPPED"]
    );
    assert!(steps[1]["attempts"][0]["endedAt"].is_string());
}

fn cancelled() -> Event {
    Event::RunCancelled(Cancelled {
        run_id: "r1".into(),
        workflow_id: "w1".into(),
    })
}

fn retried() -> Event {
    Event::RunRetried(Retried {
        run_id: "r1".into(),
        workflow_id: "w1".into(),
    })
}

#[tokio::test]
async fn steps_that_no_way_leads_to_any_more_are_skipped_at_once() {
    let before = vec![
        triggered("r1", "w1", 3),
        started("r1", "w1"),
        step_succeeded("start", 1),
    ];
    let mut then = before.clone();
    then.push(step_went("hot", 1, Way::Then));
    let (_, steps) = follow(then).await;
    let expected = ["SUCCEEDED", "SUCCEEDED", "QUEUED", "SKIPPED", "SKIPPED"];
    assert_eq!(of_each(&steps, "state"), expected);
    assert_eq!(steps[1]["way"], "then");

    let mut otherwise = before;
    otherwise.extend([step_went("hot", 1, Way::Else), step_began("later", 1)]);
    let (_, steps) = follow(otherwise).await;
    let expected = ["SUCCEEDED", "SUCCEEDED", "SKIPPED", "WAITING", "QUEUED"];
    assert_eq!(of_each(&steps, "state"), expected);
}

#[tokio::test]
async fn a_retried_run_reads_as_one_that_goes_on() {
    let (states, steps) = follow(vec![
        triggered("r1", "w1", 3),
        started("r1", "w1"),
        step_succeeded("start", 1),
        step_went("hot", 1, Way::Else),
        step_began("later", 1),
        retried(),
        cancelled(),
        retried(),
    ])
    .await;
    // A run that has not ended cannot be retried.
    assert_eq!(states[4..], ["RUNNING", "RUNNING", "CANCELLED", "QUEUED"]);
    let expected = ["SUCCEEDED", "SUCCEEDED", "SKIPPED", "QUEUED", "QUEUED"];
    assert_eq!(of_each(&steps, "state"), expected);
    assert!(steps[3]["attempts"][0]["endedAt"].is_string());
}

#[tokio::test]
async fn the_trigger_payload_is_stored_as_it_was_given() {
    let world = World::new().await;
    let projector = world.start();
    let workflow = world.stream(AggregateType::Workflow, "w1");
    world.append(workflow, 0, vec![saved(1)]).await;
    let payload = r#"{"z":"\u0000","a":{"y":1,"b":[1.50,null]}}"#;
    let mut event = triggered("r1", "w1", 1);
    if let Event::WorkflowTriggered(triggered) = &mut event {
        triggered.trigger_payload = serde_json::from_str(payload).unwrap();
    }
    let stream = world.stream(AggregateType::Run, "r1");
    let at = world.append(stream, 0, vec![event]).await;
    world.caught_up(Log::Events, at).await;
    let kept: String = sqlx::query_scalar("SELECT trigger_payload::text FROM runs")
        .fetch_one(&world.pool)
        .await
        .unwrap();
    assert_eq!(kept, r#"{"z":"\u0000","a":{"y":1,"b":[1.5,null]}}"#);
    projector.stop().await;
    world.end().await;
}
