//! Steps that wait for an event.

use std::time::Duration;

use futures::future::join_all;
use schemas::run::Way;
use schemas::{Event, RunId};
use serde_json::{Value, json};

use crate::receiver::{Answer, Receiver};
use crate::world::{Runner, World, http, is_end, notify, trigger, workflow};

fn wait(timeout: f64) -> Value {
    json!({ "id": "reply", "type": "WAIT_FOR_EVENT", "event": "lead.*",
            "match": "data.id == trigger.lead and data.score > 1", "timeoutSeconds": timeout,
            "next": ["yes"], "onTimeout": ["no"] })
}

fn tell(id: &str, data: &Value) -> Value {
    let mut step = notify(id, data);
    step["event"] = json!(id);
    step["next"] = json!([]);
    step
}

async fn world_that_waits(timeout: f64) -> World {
    let world = World::new().await;
    let data = json!({ "score": "{{ steps.reply.output.event.data.score }}",
                       "type": "{{ steps.reply.output.event.type }}" });
    let steps = [
        trigger(),
        wait(timeout),
        tell("yes", &data),
        tell("no", &json!({})),
    ];
    world.save("w", workflow(&steps)).await;
    world
}

async fn waits(world: &World, run: &RunId) {
    world
        .until(run, "the wait", |event| {
            matches!(event, Event::RunWaiting(_))
        })
        .await;
}

/// Returns which way the wait went, and checks that it went once.
async fn way(world: &World, run: &RunId) -> Way {
    let end = world.ended(run).await;
    assert!(matches!(end, Event::RunSucceeded(_)), "{end:?}");
    let events = world.events(run).await;
    let ways: Vec<Way> = events
        .iter()
        .filter_map(|recorded| match &recorded.event {
            Event::RunStepSucceeded(done) if done.step_id.as_str() == "reply" => Some(done.way),
            _ => None,
        })
        .collect();
    assert_eq!(ways.len(), 1, "{ways:?}");
    let told: Vec<String> = events
        .iter()
        .filter(|recorded| matches!(recorded.event, Event::Custom(_)))
        .map(|recorded| recorded.event.name().into_owned())
        .collect();
    let expected = if ways[0] == Way::Next {
        "custom.yes"
    } else {
        "custom.no"
    };
    assert_eq!(told, [expected]);
    ways[0]
}

#[tokio::test]
async fn a_wait_ends_with_the_first_event_that_matches() {
    let world = world_that_waits(60.0).await;
    let _runner = world.runner().await;
    // Earlier events do not count.
    world.lead("mine", 7).await;
    let run = world.trigger("w", json!({ "lead": "mine" })).await;
    waits(&world, &run).await;
    world.lead("another", 5).await;
    world.lead("mine", 1).await;
    world.lead("mine", 8).await;
    world.lead("mine", 9).await;
    assert_eq!(way(&world, &run).await, Way::Next);
    let events = world.events(&run).await;
    let told = events.iter().find_map(|recorded| match &recorded.event {
        Event::Custom(told) => Some(Value::Object(told.data.clone())),
        _ => None,
    });
    assert_eq!(told, Some(json!({ "score": 8, "type": "lead.updated" })));
}

#[tokio::test]
async fn a_wait_that_nothing_ends_goes_on_by_its_timeout() {
    let world = world_that_waits(0.3).await;
    let _runner = world.runner().await;
    let run = world.trigger("w", json!({ "lead": "mine" })).await;
    assert_eq!(way(&world, &run).await, Way::OnTimeout);
    world.lead("mine", 9).await;
    let late = world.trigger("w", json!({ "lead": "mine" })).await;
    assert_eq!(way(&world, &late).await, Way::OnTimeout);
}

#[tokio::test]
async fn what_came_in_time_counts_even_where_all_were_dead_until_its_end() {
    let world = world_that_waits(1.5).await;
    let runner = world.runner().await;
    let in_time = world.trigger("w", json!({ "lead": "mine" })).await;
    let too_late = world.trigger("w", json!({ "lead": "late" })).await;
    waits(&world, &in_time).await;
    waits(&world, &too_late).await;
    runner.kill().await;
    world.lead("mine", 9).await;
    tokio::time::sleep(Duration::from_millis(1_600)).await;
    world.lead("late", 9).await;
    let _runner = world.runner().await;
    assert_eq!(way(&world, &in_time).await, Way::Next);
    assert_eq!(way(&world, &too_late).await, Way::OnTimeout);
}

#[tokio::test]
async fn who_ends_a_wait_by_its_timeout_finds_what_nobody_has_judged() {
    let world = world_that_waits(1.5).await;
    let runner = world.runner().await;
    let in_time = world.trigger("w", json!({ "lead": "mine" })).await;
    let too_late = world.trigger("w", json!({ "lead": "late" })).await;
    waits(&world, &in_time).await;
    waits(&world, &too_late).await;
    runner.kill().await;
    world.lead("mine", 1).await;
    world.lead("mine", 9).await;
    let _runner = Runner::without_triggers(&world).await;
    assert_eq!(way(&world, &too_late).await, Way::OnTimeout);
    assert_eq!(way(&world, &in_time).await, Way::Next);
}

#[tokio::test]
async fn of_many_waits_that_are_over_at_once_each_finds_what_came_for_it_in_time() {
    let world = world_that_waits(10.0).await;
    let runner = world.runner().await;
    let runs = join_all((0..30).map(async |nth| {
        let lead = format!("lead{nth}");
        let run = world.trigger("w", json!({ "lead": lead })).await;
        waits(&world, &run).await;
        (nth, lead, run)
    }));
    let runs = runs.await;
    runner.kill().await;
    for (_, lead, _) in runs.iter().filter(|(nth, ..)| nth % 3 == 0) {
        world.lead(lead, 9).await;
    }
    let _runner = Runner::without_triggers(&world).await;
    for (nth, _, run) in &runs {
        let expected = if nth % 3 == 0 {
            Way::Next
        } else {
            Way::OnTimeout
        };
        assert_eq!(way(&world, run).await, expected, "{nth}");
    }
}

#[tokio::test]
async fn an_event_goes_on_beside_a_call_that_is_under_way() {
    let receiver = Receiver::start().await;
    receiver.usually(Answer::status(200).after(Duration::from_secs(3)));
    let world = World::new().await;
    let mut start = trigger();
    start["next"] = json!(["reply", "call"]);
    let mut call = http("call", &receiver.url("/"), json!({}));
    call["next"] = json!([]);
    let steps = [
        start,
        wait(60.0),
        call,
        tell("yes", &json!({})),
        tell("no", &json!({})),
    ];
    world.save("w", workflow(&steps)).await;
    let _runner = world.runner().await;
    let run = world.trigger("w", json!({ "lead": "mine" })).await;
    receiver.wait_for(1).await;
    world.lead("mine", 9).await;
    let told = |event: &Event| matches!(event, Event::RunStepSucceeded(done) if done.step_id.as_str() == "yes");
    world.until(&run, "the wait's end", told).await;
    assert!(
        !is_end(&world.events(&run).await.last().unwrap().event),
        "the call goes on"
    );
    assert_eq!(way(&world, &run).await, Way::Next);
    assert_eq!(receiver.received().len(), 1);
}

/// Kills the runner at arbitrary moments, while events arrive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_event_is_missed_whatever_is_killed_and_when() {
    let world = world_that_waits(60.0).await;
    let mut runs = Vec::new();
    for round in 0..6_u64 {
        let runner = world.runner().await;
        let mut new = Vec::new();
        for nth in 0..8 {
            let lead = format!("lead-{round}-{nth}");
            let run = world.trigger("w", json!({ "lead": lead })).await;
            new.push((run, lead));
        }
        for (run, _) in &new {
            waits(&world, run).await;
        }
        // Half of them arrive before the end of the runner that waits for them, half after it.
        let (before, behind) = new.split_at(4);
        for (_, lead) in before {
            world.lead(lead, 9).await;
        }
        tokio::time::sleep(Duration::from_millis(round * round * 41 % 300)).await;
        runner.kill().await;
        for (_, lead) in behind {
            world.lead(lead, 9).await;
        }
        runs.extend(new);
    }
    let _runner = world.runner().await;
    for (run, _) in &runs {
        assert_eq!(way(&world, run).await, Way::Next);
    }
}
