//! Retries and their timers.

use std::time::{Duration, Instant};

use event_log::CheckpointBucket;
use schemas::Event;
use serde_json::json;
use workflow_runner::leases::PARTITIONS;

use crate::receiver::{Answer, Receiver};
use crate::world::{World, http, trigger, workflow};

#[tokio::test]
async fn a_failure_that_may_pass_is_tried_again_under_the_same_key() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    receiver.then(Answer::status(500).text("oops"));
    receiver.then(Answer::status(429));
    receiver.then(Answer::status(201));
    let steps = [trigger(), http("call", &receiver.url("/"), json!({}))];
    world.save("w", workflow(&steps)).await;
    let _runner = world.runner().await;
    let run = world.trigger("w", json!({})).await;
    assert!(matches!(world.ended(&run).await, Event::RunSucceeded(_)));
    let keys: Vec<String> = receiver
        .received()
        .iter()
        .map(|received| received.header("idempotency-key").to_owned())
        .collect();
    assert_eq!(keys, vec![format!("{run}/call"); 3]);
    let names = world.names(&run).await;
    let call: Vec<&str> = names[4..].iter().map(String::as_str).collect();
    let attempt = ["step_started", "step_failed", "waiting"];
    let expected = [
        &attempt[..],
        &attempt,
        &["step_started", "step_succeeded", "succeeded"],
    ];
    assert_eq!(call, expected.concat());
}

#[tokio::test]
async fn the_receiver_says_when_to_come_again() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    receiver.then(Answer::status(503).with("retry-after", "1"));
    let steps = [trigger(), http("call", &receiver.url("/"), json!({}))];
    world.save("w", workflow(&steps)).await;
    let _runner = world.runner().await;
    let run = world.trigger("w", json!({})).await;
    receiver.wait_for(1).await;
    let first = Instant::now();
    receiver.wait_for(2).await;
    assert!(
        first.elapsed() >= Duration::from_millis(900),
        "{:?}",
        first.elapsed()
    );
    world.ended(&run).await;
}

/// Leaves one run waiting for `seconds`.
async fn waiting_run(world: &World, receiver: &Receiver, seconds: u32) -> schemas::RunId {
    receiver.then(Answer::status(503).with("retry-after", &seconds.to_string()));
    let steps = [trigger(), http("call", &receiver.url("/"), json!({}))];
    world.save("w", workflow(&steps)).await;
    let run = world.trigger("w", json!({})).await;
    world
        .until(&run, "the wait", |event| {
            matches!(event, Event::RunWaiting(_))
        })
        .await;
    run
}

#[tokio::test]
async fn a_timer_fires_after_a_restart() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let runner = world.runner().await;
    let run = waiting_run(&world, &receiver, 2).await;
    runner.stop().await;
    let _runner = world.runner().await;
    assert!(matches!(world.ended(&run).await, Event::RunSucceeded(_)));
    assert_eq!(receiver.received().len(), 2);
}

#[tokio::test]
async fn a_timer_that_was_due_meanwhile_fires_at_the_start() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let runner = world.runner().await;
    let run = waiting_run(&world, &receiver, 1).await;
    runner.stop().await;
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    let _runner = world.runner().await;
    assert!(matches!(world.ended(&run).await, Event::RunSucceeded(_)));
}

#[tokio::test]
async fn a_timer_survives_the_loss_of_the_checkpoints() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let runner = world.runner().await;
    let run = waiting_run(&world, &receiver, 2).await;
    runner.kill().await;
    let name = CheckpointBucket::Runner.name();
    let bucket = world.log.bucket(name, None).await.unwrap();
    for partition in 0..PARTITIONS {
        bucket.purge(format!("runs.{partition}")).await.unwrap();
    }
    let _runner = world.runner().await;
    assert!(matches!(world.ended(&run).await, Event::RunSucceeded(_)));
    assert_eq!(receiver.received().len(), 2);
}
