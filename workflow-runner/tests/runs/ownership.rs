//! Several runners, and runners that die.

use std::collections::HashMap;
use std::time::Duration;

use schemas::{Event, Recorded, RunId};
use serde_json::{Value, json};
use workflow_runner::runs::RunSettings;

use crate::receiver::{Answer, Receiver};
use crate::world::{Runner, World, http, is_end, notify, settings, trigger, workflow};

pub(crate) async fn world_with_three_steps(receiver: &Receiver) -> World {
    with_three_steps(World::new().await, receiver).await
}

pub(crate) async fn with_three_steps(world: World, receiver: &Receiver) -> World {
    let steps = [
        trigger(),
        http("call", &receiver.url("/{{ run.id }}"), json!({})),
        notify("tell", &json!({})),
    ];
    world.save("w", workflow(&steps)).await;
    world
}

fn count(events: &[Recorded], counts: impl Fn(&Event) -> bool) -> usize {
    events
        .iter()
        .filter(|recorded| counts(&recorded.event))
        .count()
}

/// Each run was started once, reported once, ended once, and nothing comes after its end.
pub(crate) async fn assert_whole(world: &World, runs: &[RunId]) {
    for run in runs {
        let end = world.ended(run).await;
        assert!(matches!(end, Event::RunSucceeded(_)), "{run}: {end:?}");
        let events = world.events(run).await;
        assert_eq!(
            count(&events, |event| matches!(event, Event::RunStarted(_))),
            1
        );
        assert_eq!(count(&events, |event| matches!(event, Event::Custom(_))), 1);
        assert_eq!(count(&events, is_end), 1);
        let succeeded = |event: &Event| matches!(event, Event::RunStepSucceeded(_));
        assert_eq!(count(&events, succeeded), 3);
    }
}

#[tokio::test]
async fn runs_triggered_without_a_runner_wait_for_one() {
    let receiver = Receiver::start().await;
    let world = world_with_three_steps(&receiver).await;
    let runs = world.trigger_many("w", 50).await;
    let _runner = world.runner().await;
    assert_whole(&world, &runs).await;
    assert_eq!(receiver.received().len(), 50);
}

/// More than is kept of what the log delivered: the rest is read in its turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_wait_for_a_runner_however_much_they_carry() {
    let world = World::new().await;
    world.save("w", workflow(&[trigger()])).await;
    let payload = json!({ "text": "x".repeat(200 * 1024) });
    let mut runs = Vec::new();
    for _ in 0..120 {
        runs.push(world.trigger("w", payload.clone()).await);
    }
    world.cancel(&runs[7]).await;
    let _runner = world.runner().await;
    for (nth, run) in runs.iter().enumerate() {
        let end = world.ended(run).await;
        match nth {
            7 => assert!(matches!(end, Event::RunCancelled(_)), "{end:?}"),
            _ => assert!(matches!(end, Event::RunSucceeded(_)), "{end:?}"),
        }
        let behind = world.events(run).await.pop().unwrap();
        assert!(is_end(&behind.event), "{behind:?}");
    }
}

#[tokio::test]
async fn two_runners_share_the_runs_and_do_each_once() {
    let receiver = Receiver::start().await;
    let world = world_with_three_steps(&receiver).await;
    // Long enough that no lease expires on a busy machine, after which a call may be repeated.
    let settings = || RunSettings {
        lease: Duration::from_secs(6),
        ..settings()
    };
    let _first = world.runner_with(settings()).await;
    let _second = world.runner_with(settings()).await;
    let mut runs = Vec::new();
    // Also while the second takes its share over from the first.
    for _ in 0..10 {
        runs.extend(world.trigger_many("w", 20).await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_whole(&world, &runs).await;
    assert_eq!(receiver.received().len(), runs.len());
}

#[tokio::test]
async fn the_runs_of_a_dead_runner_pass_to_the_living() {
    let receiver = Receiver::start().await;
    let world = world_with_three_steps(&receiver).await;
    receiver.usually(Answer::status(200).after(Duration::from_millis(300)));
    let first = world.runner().await;
    let _second = world.runner().await;
    let runs = world.trigger_many("w", 60).await;
    receiver.wait_for(10).await;
    first.kill().await;
    assert_whole(&world, &runs).await;
}

/// Kills the runner repeatedly at arbitrary moments.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_run_ends_whatever_is_killed_and_when() {
    let receiver = Receiver::start().await;
    receiver.usually(Answer::status(200).after(Duration::from_millis(5)));
    let world = world_with_three_steps(&receiver).await;
    let mut runs = Vec::new();
    for round in 0..8_u64 {
        let runner: Runner = world.runner().await;
        runs.extend(world.trigger_many("w", 25).await);
        // Spread over the stages of a run.
        let moment = Duration::from_millis(40 + round * round * 37 % 700);
        tokio::time::sleep(moment).await;
        runner.kill().await;
    }
    let _runner = world.runner().await;
    assert_whole(&world, &runs).await;

    // A call is repeated only if its outcome was not recorded, and under the same key.
    let mut calls: HashMap<String, usize> = HashMap::new();
    for received in receiver.received() {
        *calls
            .entry(received.header("idempotency-key").to_owned())
            .or_default() += 1;
    }
    assert_eq!(calls.len(), runs.len());
    let repeated = calls.values().filter(|count| **count > 1).count();
    println!("{repeated} of {} calls were repeated", runs.len());
    for run in &runs {
        let events = world.events(run).await;
        let attempts = |event: &Event| matches!(event, Event::RunStepStarted(begun) if begun.step_id.as_str() == "call");
        assert_eq!(count(&events, attempts), 1, "a death is no failed attempt");
    }
}

#[tokio::test]
async fn a_clean_end_finishes_the_steps_under_way() {
    let receiver = Receiver::start().await;
    receiver.usually(Answer::status(200).after(Duration::from_millis(200)));
    let world = world_with_three_steps(&receiver).await;
    let runner = world.runner().await;
    let runs = world.trigger_many("w", 10).await;
    receiver.wait_for(10).await;
    runner.stop().await;
    for run in &runs {
        assert_eq!(world.names(run).await.last().unwrap(), "succeeded");
    }
    assert_eq!(receiver.received().len(), 10);
}

#[tokio::test]
async fn a_runner_says_when_its_runs_and_triggers_are_ready() {
    let receiver = Receiver::start().await;
    let world = world_with_three_steps(&receiver).await;
    let runner = world.runner().await;
    // Another test of the process may have installed the provider already: it is the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = service::listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let url = format!("http://{}/readyz", listener.local_addr().unwrap());
    let router = service::health::router(runner.readiness.clone());
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    let ready = async |part| {
        let told = reqwest::get(&url).await.unwrap().text().await.unwrap();
        let told: Value = serde_json::from_str(&told).unwrap();
        told["checks"][part]["ok"] == true
    };
    let end = tokio::time::Instant::now() + crate::world::TIMEOUT;
    let (runs, triggers) = ("workflow-runner/runs", "workflow-runner/triggers");
    while !(ready(runs).await && ready(triggers).await) {
        assert!(tokio::time::Instant::now() < end, "it never gets ready");
        tokio::time::sleep(crate::world::LOOK).await;
    }
    runner.stop().await;
    assert!(!ready(runs).await && !ready(triggers).await, "it has ended");
    serving.abort();
}
