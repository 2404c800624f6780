//! Conditions, delays and records, seen from outside.

use std::time::Duration;

use schemas::record::Contact;
use schemas::{AggregateType, Event, Recorded, StreamId};
use serde_json::{Value, json};

use crate::world::{World, notify, trigger, workflow};

fn delay(id: &str, seconds: f64) -> Value {
    json!({ "id": id, "type": "DELAY", "seconds": seconds })
}

fn record(data: &Value) -> Value {
    json!({ "id": "save", "type": "RECORD", "kind": "contacts", "recordId": "{{ trigger.id }}",
            "data": data })
}

async fn contact(world: &World, id: &str) -> Vec<Recorded> {
    let stream = StreamId::new(&world.org, AggregateType::Contact, id);
    world.log.load(&stream).await.unwrap()
}

fn first_name(recorded: &Recorded) -> Option<&str> {
    match &recorded.event {
        Event::ContactCreated(Contact { first_name, .. })
        | Event::ContactUpdated(Contact { first_name, .. }) => first_name.as_deref(),
        other => panic!("{other:?}"),
    }
}

async fn output(world: &World, run: &schemas::RunId, step: &str) -> Value {
    let events = world.events(run).await;
    let mut outputs = events
        .into_iter()
        .filter_map(|recorded| match recorded.event {
            Event::RunStepSucceeded(done) if done.step_id.as_str() == step => Some(done.output),
            _ => None,
        });
    outputs
        .next()
        .unwrap_or_else(|| panic!("{step} has not succeeded"))
}

#[tokio::test]
async fn a_condition_goes_one_of_two_ways() {
    let world = World::new().await;
    let steps = [
        trigger(),
        json!({ "id": "hot", "type": "CONDITION", "if": "trigger.lead.score >= 80", "then": ["call"],
                "else": ["mail"] }),
        json!({ "id": "call", "type": "NOTIFY", "event": "call", "next": ["end"] }),
        json!({ "id": "mail", "type": "NOTIFY", "event": "mail", "next": ["end"] }),
        json!({ "id": "end", "type": "NOTIFY", "event": "end", "join": "all", "next": [],
                "data": { "hot": "{{ steps.hot.output.result }}" } }),
    ];
    world.save("w", workflow(&steps)).await;
    let _runner = world.runner().await;
    for (score, told) in [(80, "custom.call"), (79, "custom.mail")] {
        let run = world
            .trigger("w", json!({ "lead": { "score": score } }))
            .await;
        let end = world.ended(&run).await;
        assert!(matches!(end, Event::RunSucceeded(_)), "{end:?}");
        let names = world.names(&run).await;
        let customs: Vec<_> = names
            .iter()
            .filter(|name| name.starts_with("custom."))
            .collect();
        assert_eq!(customs, [told, "custom.end"]);
    }
    let run = world.trigger("w", json!({})).await;
    let Event::RunFailed(failed) = world.ended(&run).await else {
        panic!("what is not there has no score");
    };
    assert!(failed.error.starts_with("step hot: if: "), "{failed:?}");
}

#[tokio::test]
async fn a_delay_lasts_as_long_as_it_says_whichever_process_dies() {
    let world = World::new().await;
    world
        .save(
            "w",
            workflow(&[trigger(), delay("later", 1.5), notify("tell", &json!({}))]),
        )
        .await;
    let runner = world.runner().await;
    let run = world.trigger("w", json!({})).await;
    world
        .until(&run, "the wait", |event| {
            matches!(event, Event::RunWaiting(_))
        })
        .await;
    runner.kill().await;
    let _other = world.runner().await;
    let end = world.ended(&run).await;
    assert!(matches!(end, Event::RunSucceeded(_)), "{end:?}");
    let names = world.names(&run).await;
    let expected = [
        "workflow.triggered",
        "started",
        "step_started",
        "step_succeeded",
        "step_started",
        "waiting",
        "step_succeeded",
        "step_started",
        "custom.told",
        "step_succeeded",
        "succeeded",
    ];
    assert_eq!(names, expected);
    let events = world.events(&run).await;
    let lasted = (events[6].time - events[4].time).to_std().unwrap();
    assert!(lasted >= Duration::from_millis(1_500), "{lasted:?}");
}

#[tokio::test]
async fn a_record_is_written_with_the_success_of_its_step() {
    let world = World::new().await;
    let data = json!({ "firstName": "{{ trigger.name }}" });
    world.save("w", workflow(&[trigger(), record(&data)])).await;
    let _runner = world.runner().await;
    for (name, status) in [("Ada", "created"), ("Ada", "unchanged"), ("Eve", "updated")] {
        let run = world
            .trigger("w", json!({ "id": "c-1", "name": name }))
            .await;
        let end = world.ended(&run).await;
        assert!(matches!(end, Event::RunSucceeded(_)), "{end:?}");
        let saved = output(&world, &run, "save").await;
        assert_eq!(saved, json!({ "id": "c-1", "status": status }));
    }
    let written = contact(&world, "c-1").await;
    let names: Vec<_> = written.iter().map(first_name).collect();
    assert_eq!(names, [Some("Ada"), Some("Eve")]);
    assert_eq!(
        written[0].context.correlation_id.as_deref(),
        Some("request-1")
    );
}

#[tokio::test]
async fn a_record_without_an_id_gets_one_and_one_that_is_wrong_fails_the_step() {
    let world = World::new().await;
    let mut step =
        record(&json!({ "firstName": "{{ trigger.name }}", "createdAt": "{{ trigger.at }}" }));
    step.as_object_mut().unwrap().remove("recordId");
    world.save("w", workflow(&[trigger(), step])).await;
    let _runner = world.runner().await;
    let run = world
        .trigger("w", json!({ "name": "Ada", "at": null }))
        .await;
    world.ended(&run).await;
    let saved = output(&world, &run, "save").await;
    let id = saved["id"].as_str().unwrap();
    assert_eq!(contact(&world, id).await.len(), 1);
    let run = world.trigger("w", json!({ "name": 7, "at": null })).await;
    let Event::RunFailed(failed) = world.ended(&run).await else {
        panic!("a name is text");
    };
    assert!(
        failed.error.starts_with("step save: data.firstName: "),
        "{failed:?}"
    );
}

#[tokio::test]
async fn two_steps_that_write_one_record_both_do() {
    let world = World::new().await;
    let save = |id: &str, city: &str| {
        json!({ "id": id, "type": "RECORD", "kind": "contacts", "recordId": "c-1",
                "data": { "firstName": "Ada", "city": city }, "next": ["tell"] })
    };
    let mut start = trigger();
    start["next"] = json!(["one", "other"]);
    let mut tell = notify("tell", &json!({}));
    tell["join"] = json!("all");
    world
        .save(
            "w",
            workflow(&[start, save("one", "Bonn"), save("other", "Ulm"), tell]),
        )
        .await;
    let _runner = world.runner().await;
    let run = world.trigger("w", json!({})).await;
    let end = world.ended(&run).await;
    assert!(matches!(end, Event::RunSucceeded(_)), "{end:?}");
    assert_eq!(contact(&world, "c-1").await.len(), 2);
}

#[tokio::test]
async fn steps_that_are_ready_at_the_same_time_begin_once_each_however_many_they_are() {
    let world = World::new().await;
    let tell = |id: &str, next: &[String]| json!({ "id": id, "type": "NOTIFY", "event": "told", "next": next });
    let last: Vec<String> = (0..494).map(|nth| format!("last-{nth}")).collect();
    // A step leads to at most a hundred others.
    let between = last.chunks(100).enumerate();
    let between: Vec<Value> = between
        .map(|(nth, next)| tell(&format!("between-{nth}"), next))
        .collect();
    let mut start = trigger();
    start["next"] = between.iter().map(|step| step["id"].clone()).collect();
    let mut steps = vec![start];
    steps.extend(between);
    steps.extend(last.iter().map(|id| tell(id, &[])));
    assert_eq!(steps.len(), 500, "as many as a definition may have");
    world.save("w", workflow(&steps)).await;
    let _runner = world.runner().await;
    let run = world.trigger("w", json!({})).await;
    let end = world.ended(&run).await;
    assert!(matches!(end, Event::RunSucceeded(_)), "{end:?}");
    let events = world.events(&run).await;
    let begun = events.iter().filter_map(|recorded| match &recorded.event {
        Event::RunStepStarted(begun) => Some(begun.step_id.as_str()),
        _ => None,
    });
    let mut begun: Vec<_> = begun.collect();
    begun.sort_unstable();
    let mut each = begun.clone();
    each.dedup();
    assert_eq!((begun.len(), each.len()), (500, 500));
    let told = events.iter();
    let told = told.filter(|recorded| matches!(recorded.event, Event::Custom(_)));
    assert_eq!(told.count(), 499);
}

/// Kills the runner at arbitrary moments.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_are_written_once_and_delays_end_whatever_is_killed_and_when() {
    let world = World::new().await;
    // Each run writes its own value, so that a second write would show.
    let data = json!({ "firstName": "{{ run.id }}" });
    let steps = [
        trigger(),
        record(&data),
        delay("later", 0.2),
        notify("tell", &json!({})),
    ];
    world.save("w", workflow(&steps)).await;
    let mut runs = Vec::new();
    for round in 0..6_u64 {
        let runner = world.runner().await;
        for nth in 0..10 {
            runs.push(
                world
                    .trigger("w", json!({ "id": format!("c-{}", nth % 3) }))
                    .await,
            );
        }
        tokio::time::sleep(Duration::from_millis(30 + round * round * 41 % 600)).await;
        runner.kill().await;
    }
    let _runner = world.runner().await;
    let mut wanted = Vec::new();
    for run in &runs {
        let end = world.ended(run).await;
        assert!(matches!(end, Event::RunSucceeded(_)), "{run}: {end:?}");
        wanted.push(run.to_string());
    }
    let mut written = Vec::new();
    for nth in 0..3 {
        let events = contact(&world, &format!("c-{nth}")).await;
        written.extend(events.iter().filter_map(first_name).map(str::to_owned));
    }
    wanted.sort_unstable();
    written.sort_unstable();
    assert_eq!(written, wanted);
}
