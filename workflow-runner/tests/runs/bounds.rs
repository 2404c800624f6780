//! Limits of what one cause may lead to, whatever is killed and when.

use std::time::Duration;

use schemas::workflow::{NotTriggered, WhyNot};
use schemas::{AggregateType, Event, Log, Recorded, RunId};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use workflow_runner::runs::RunSettings;

use crate::world::{LOOK, TIMEOUT, World, notify, settings, workflow};

const BUDGET: u32 = 200;

fn bounded() -> RunSettings {
    RunSettings {
        caused_runs: BUDGET,
        ..settings()
    }
}

/// A workflow whose runs emit the event that triggers it three times.
fn bomb() -> Value {
    let tell = |id: &str| notify(id, &json!({}));
    let on = json!({ "id": "start", "type": "TRIGGER", "on": { "event": "custom.told" } });
    workflow(&[on, tell("a"), tell("b"), tell("c")])
}

async fn told(world: &World) -> Vec<NotTriggered> {
    let kind = Some(AggregateType::Cause);
    let page = world.log.page(Log::Events, &world.org, kind, 0, 1_000);
    let events = page.await.unwrap();
    let told = events.events().map(|recorded| match &recorded.event {
        Event::WorkflowNotTriggered(told) => told.clone(),
        other => panic!("{other:?}"),
    });
    told.collect()
}

/// The same, once there are some: they are reported concurrently with further judging.
async fn until_told(world: &World) -> Vec<NotTriggered> {
    let end = Instant::now() + TIMEOUT;
    loop {
        let told = told(world).await;
        if !told.is_empty() {
            return told;
        }
        assert!(Instant::now() < end, "nothing was told");
        sleep(LOOK).await;
    }
}

fn run_id(recorded: &Recorded) -> &RunId {
    match &recorded.event {
        Event::WorkflowTriggered(triggered) => &triggered.run_id,
        other => panic!("{other:?}"),
    }
}

/// Waits until every run of the workflow has ended, and there are no more of them.
async fn all_ended(world: &World, count: usize) {
    for run in world.until_runs("w", count).await {
        world.ended(run_id(&run)).await;
    }
}

#[tokio::test]
async fn runs_that_set_each_other_off_are_counted_once_whatever_is_killed_and_when() {
    let world = World::new().await;
    world.save("w", bomb()).await;
    let first = world.trigger("w", json!({})).await;
    for round in 0..6_u64 {
        let runner = world.runner_with(bounded()).await;
        let other = if round % 2 == 0 {
            Some(world.runner_with(bounded()).await)
        } else {
            None
        };
        tokio::time::sleep(Duration::from_millis(400 + round * round * 41 % 700)).await;
        runner.kill().await;
        if let Some(other) = other {
            other.kill().await;
        }
    }
    let _runner = world.runner_with(bounded()).await;
    let all = usize::try_from(BUDGET).unwrap() + 1;
    all_ended(&world, all).await;
    // The events of the last of them are judged before this one.
    world
        .save(
            "after",
            workflow(&[
                json!({ "id": "start", "type": "TRIGGER", "on": { "event": "lead.created" } }),
            ]),
        )
        .await;
    world.lead("last", 1).await;
    world.until_runs("after", 1).await;
    let runs = world.runs_of("w").await;
    assert_eq!(runs.len(), all);
    let mut counted: Vec<u32> = runs
        .iter()
        .filter_map(|run| run.context.cause)
        .map(|cause| cause.runs)
        .collect();
    counted.sort_unstable();
    assert_eq!(counted, (1..=BUDGET).collect::<Vec<_>>());
    // Some of them may have reached the last hop before.
    let (runs, hops): (Vec<_>, Vec<_>) = told(&world)
        .await
        .into_iter()
        .partition(|told| told.reason == WhyNot::Runs);
    assert!(runs.len() == 3 && hops.len() <= 3, "{runs:?} {hops:?}");
    for told in runs {
        assert_eq!(told.limit, Some(BUDGET));
        assert_eq!(told.cause_id.to_string(), first.as_str());
    }
}

#[tokio::test]
async fn what_each_event_from_outside_sets_off_is_not_counted_against_others() {
    let world = World::new().await;
    let on = json!({ "id": "start", "type": "TRIGGER", "on": { "event": "lead.created" } });
    world
        .save("w", workflow(&[on, notify("tell", &json!({}))]))
        .await;
    let on = json!({ "id": "start", "type": "TRIGGER", "on": { "event": "custom.told" } });
    world.save("next", workflow(&[on])).await;
    let narrow = RunSettings {
        caused_runs: 1,
        ..settings()
    };
    let _runner = world.runner_with(narrow).await;
    // All from one request, like the lines of an upload.
    for nth in 0..5 {
        world.lead(&format!("lead-{nth}"), 1).await;
    }
    world.until_runs("next", 5).await;
    assert!(told(&world).await.is_empty());
}

#[tokio::test]
async fn reaching_the_last_hop_is_reported() {
    let world = World::new().await;
    let on = json!({ "id": "start", "type": "TRIGGER", "on": { "event": "lead.created" } });
    world.save("w", workflow(&[on])).await;
    let _runner = world.runner().await;
    world.lead_after_hops("far", 1, 8).await;
    world.lead("near", 1).await;
    assert_eq!(world.until_runs("w", 1).await.len(), 1);
    let told = until_told(&world).await;
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].reason, told[0].limit), (WhyNot::Hops, Some(8)));
    assert_eq!(told[0].event_type, "lead.created");
    assert_eq!(told[0].workflow_id.as_str(), "w");
}
