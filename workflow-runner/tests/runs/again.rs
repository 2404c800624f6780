//! Runs that are retried as a whole.

use std::time::Duration;

use schemas::{Event, RunId, run};
use serde_json::json;

use crate::receiver::{Answer, Receiver};
use crate::world::{World, http, is_end, notify, trigger, workflow};

/// Retries a run like the API does.
async fn retry(world: &World, run: &RunId) {
    let events = world.events(run).await;
    let retried = Event::RunRetried(run::Retried {
        run_id: run.clone(),
        workflow_id: "w".into(),
    });
    let seen = events.last().map(|last| last.sequence);
    world.append(&world.stream(run), seen, retried).await;
}

async fn world_with_a_call(receiver: &Receiver) -> World {
    let world = World::new().await;
    let steps = [
        trigger(),
        notify("first", &json!({})),
        http("call", &receiver.url("/"), json!({})),
        notify("tell", &json!({})),
    ];
    world.save("w", workflow(&steps)).await;
    world
}

fn count(names: &[String], name: &str) -> usize {
    names.iter().filter(|one| *one == name).count()
}

#[tokio::test]
async fn a_retried_run_goes_on_from_what_failed() {
    let receiver = Receiver::start().await;
    let world = world_with_a_call(&receiver).await;
    receiver.usually(Answer::status(503));
    let _runner = world.runner().await;
    let run = world.trigger("w", json!({})).await;
    assert!(matches!(world.ended(&run).await, Event::RunFailed(_)));
    assert_eq!(receiver.received().len(), 3);
    retry(&world, &run).await;
    // The attempts are counted from the start again, so it fails after as many.
    receiver.wait_for(6).await;
    assert!(matches!(
        world.until(&run, "the end", is_end).await,
        Event::RunFailed(_)
    ));
    receiver.usually(Answer::status(200));
    retry(&world, &run).await;
    let end = world
        .until(&run, "the end", |event| {
            matches!(event, Event::RunSucceeded(_))
        })
        .await;
    assert!(is_end(&end));
    let names = world.names(&run).await;
    // Succeeded steps were not repeated.
    assert_eq!(count(&names, "custom.told"), 2);
    assert_eq!(count(&names, "retried"), 2);
    let attempts: Vec<u32> = world
        .events(&run)
        .await
        .iter()
        .filter_map(|recorded| match &recorded.event {
            Event::RunStepStarted(begun) if begun.step_id.as_str() == "call" => Some(begun.attempt),
            _ => None,
        })
        .collect();
    assert_eq!(attempts, [1, 2, 3, 4, 5, 6, 7]);
}

#[tokio::test]
async fn a_run_may_be_retried_while_its_cancelled_call_is_still_under_way() {
    let receiver = Receiver::start().await;
    let world = world_with_a_call(&receiver).await;
    receiver.usually(Answer::status(200).after(Duration::from_millis(300)));
    let _runner = world.runner().await;
    for _ in 0..5 {
        let run = world.trigger("w", json!({})).await;
        let before = receiver.received().len();
        receiver.wait_for(before + 1).await;
        world.cancel(&run).await;
        retry(&world, &run).await;
        let end = world
            .until(&run, "the end", |event| {
                matches!(event, Event::RunSucceeded(_))
            })
            .await;
        assert!(is_end(&end));
    }
}

#[tokio::test]
async fn a_run_that_was_retried_while_nobody_ran_goes_on_with_the_next_runner() {
    let receiver = Receiver::start().await;
    let world = world_with_a_call(&receiver).await;
    receiver.usually(Answer::status(404));
    let runner = world.runner().await;
    let run = world.trigger("w", json!({})).await;
    world.ended(&run).await;
    runner.stop().await;
    receiver.usually(Answer::status(200));
    retry(&world, &run).await;
    let runner = world.runner().await;
    // Also if the runner that continues it dies.
    runner.kill().await;
    let _runner = world.runner().await;
    world
        .until(&run, "the end", |event| {
            matches!(event, Event::RunSucceeded(_))
        })
        .await;
}

/// A runner that begins a run finds that it was cancelled and retried meanwhile, and continues it;
/// it may only learn of the cancellation then.
#[tokio::test]
async fn a_run_that_was_called_off_and_retried_while_it_was_begun_goes_on() {
    const WANTED: usize = 60;
    let receiver = Receiver::start().await;
    receiver.usually(Answer::status(200).after(Duration::from_millis(50)));
    let world = world_with_a_call(&receiver).await;
    let _runner = world.runner().await;
    let mut overtaken = Vec::new();
    while overtaken.len() < WANTED {
        overtaken.extend(world.trigger_cancel_and_retry("w").await);
    }
    for run in overtaken {
        let is_success = |event: &Event| matches!(event, Event::RunSucceeded(_));
        world.until(&run, "the end", is_success).await;
    }
}
