//! The log becomes unavailable and recovers. Each test has a server of its own.

use std::time::Duration;

use local_servers::{Answers, LaggingCopy, LocalNats, NatsOptions, TemporaryHome};
use schemas::{Event, RunId};
use serde_json::json;
use workflow_runner::runs::RunSettings;

use crate::ownership::{assert_whole, with_three_steps};
use crate::receiver::{Answer, Receiver};
use crate::runner::Runner;
use crate::world::{World, http, settings, trigger, workflow};

async fn start() -> (TemporaryHome, LocalNats) {
    let home = TemporaryHome::new().unwrap();
    let options = NatsOptions::default();
    let nats = LocalNats::start(home.path(), options).await.unwrap();
    (home, nats)
}

/// Three servers keep the log, and the one that the runner reads from has not received the latest
/// events.
#[tokio::test]
async fn a_run_that_the_nearest_copy_lacks_is_carried_on() {
    let (_home, nats) = start().await;
    let mut copy = LaggingCopy::before(&nats).await.unwrap();
    let receiver = Receiver::start().await;
    let world = with_three_steps(World::at(&nats.url()).await, &receiver).await;
    let seen = world.log_of_three(copy.url()).await;
    let _runner = Runner::start(seen, settings(), true).await;
    let before = trigger_some(&world, 1).await;
    assert_whole(&world, &before).await;
    copy.hold_back(Answers::Reads).await.unwrap();
    // It is read again once its step may be retried.
    receiver.then(Answer::status(503).with("retry-after", "1"));
    let runs = trigger_some(&world, 1).await;
    for run in &runs {
        assert!(matches!(world.ended(run).await, Event::RunSucceeded(_)));
    }
}

/// Triggers runs; returns those that were accepted.
async fn trigger_some(world: &World, count: usize) -> Vec<RunId> {
    let mut runs = Vec::new();
    for _ in 0..count {
        runs.extend(world.try_trigger("w").await);
    }
    runs
}

#[tokio::test]
async fn runs_go_on_after_the_log_was_killed() {
    let (_home, mut nats) = start().await;
    let receiver = Receiver::start().await;
    receiver.usually(Answer::status(200).after(Duration::from_millis(30)));
    let world = with_three_steps(World::at(&nats.url()).await, &receiver).await;
    let _runner = world.runner().await;
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.extend(trigger_some(&world, 30).await);
        nats.kill();
        tokio::time::sleep(Duration::from_millis(200)).await;
        nats.restart().await.unwrap();
        runs.extend(trigger_some(&world, 5).await);
    }
    assert!(!runs.is_empty());
    assert_whole(&world, &runs).await;
}

#[tokio::test]
async fn a_stalled_log_costs_the_leases_and_nothing_else() {
    let (_home, nats) = start().await;
    let receiver = Receiver::start().await;
    receiver.usually(Answer::status(200).after(Duration::from_millis(100)));
    let world = with_three_steps(World::at(&nats.url()).await, &receiver).await;
    let (_first, _second) = (world.runner().await, world.runner().await);
    let mut runs = trigger_some(&world, 30).await;
    nats.pause();
    // Longer than the leases last.
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    nats.resume();
    runs.extend(trigger_some(&world, 10).await);
    assert_whole(&world, &runs).await;
}

/// A call's response is taken when it arrives, though nothing can be written meanwhile.
#[tokio::test]
async fn a_stalled_log_does_not_make_a_response_late() {
    let (_home, nats) = start().await;
    let receiver = Receiver::start().await;
    receiver.usually(Answer::status(200).after(Duration::from_millis(500)));
    let world = World::at(&nats.url()).await;
    let mut start = trigger();
    start["next"] = json!(["call", "wait"]);
    let call = http(
        "call",
        &receiver.url("/"),
        json!({"timeoutSeconds": 1, "next": []}),
    );
    let wait = json!({"id": "wait", "type": "DELAY", "seconds": 0.3});
    world.save("w", workflow(&[start, call, wait])).await;
    let patient = RunSettings {
        lease: Duration::from_secs(20),
        ..settings()
    };
    let _runner = world.runner_with(patient).await;
    let run = world.trigger("w", json!({})).await;
    receiver.wait_for(1).await;
    nats.pause();
    tokio::time::sleep(Duration::from_secs(2)).await;
    nats.resume();
    assert!(matches!(world.ended(&run).await, Event::RunSucceeded(_)));
    assert_eq!(receiver.received().len(), 1);
}
