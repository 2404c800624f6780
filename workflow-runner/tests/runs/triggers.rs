//! Runs triggered by events and by schedules.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Timelike as _, Utc};
use event_log::CheckpointBucket;
use schemas::workflow::{Saved, Triggered};
use schemas::{AggregateType, Event, OrgId, Recorded, StreamId, WorkflowId};
use serde_json::{Value, json};

use workflow_runner::leases::PARTITIONS;

use crate::world::{World, notify, workflow};

fn on(on: &Value) -> Value {
    json!({ "id": "start", "type": "TRIGGER", "on": on })
}

fn triggered(recorded: &Recorded) -> &Triggered {
    let Event::WorkflowTriggered(triggered) = &recorded.event else {
        panic!("{recorded:?}");
    };
    triggered
}

fn ids(runs: &[Recorded]) -> Vec<&Value> {
    let payloads = runs.iter().map(|run| &triggered(run).trigger_payload);
    payloads.map(|payload| &payload["id"]).collect()
}

#[tokio::test]
async fn an_event_sets_off_a_run_with_its_data() {
    let world = World::new().await;
    let listening = on(&json!({ "event": "lead.*", "filter": "data.score >= 50" }));
    world
        .save("w", workflow(&[listening, notify("tell", &json!({}))]))
        .await;
    let _runner = world.runner().await;
    world.lead("cold", 49).await;
    world.lead("hot", 50).await;
    let runs = world.until_runs("w", 1).await;
    let first = triggered(&runs[0]);
    let payload = Value::Object(first.trigger_payload.clone());
    assert_eq!(
        (&payload["id"], &payload["score"]),
        (&json!("hot"), &json!(50))
    );
    assert_eq!(payload["triggeredBy"], "event");
    assert!(payload["triggeredAt"].is_string());
    assert_eq!(runs[0].context.hops, 1);
    assert_eq!(runs[0].context.correlation_id.as_deref(), Some("request-1"));
    let end = world.ended(&first.run_id).await;
    assert!(matches!(end, Event::RunSucceeded(_)), "{end:?}");
    let events = world.events(&first.run_id).await;
    assert!(events.iter().all(|event| event.context.hops == 1));
    // Later events are judged in the same way, and the cold one triggered nothing.
    world.lead("hot", 60).await;
    let runs = world.until_runs("w", 2).await;
    assert_eq!(ids(&runs), ["hot", "hot"]);
}

#[tokio::test]
async fn only_what_is_recorded_while_the_workflow_is_active_sets_it_off() {
    let world = World::new().await;
    let _runner = world.runner().await;
    world.lead("before", 1).await;
    let mut definition = workflow(&[on(&json!({ "event": "lead.created" }))]);
    world.save("w", definition.clone()).await;
    world.lead("while", 1).await;
    world.until_runs("w", 1).await;
    definition["status"] = json!("PAUSED");
    world.save("w", definition.clone()).await;
    world.lead("paused", 1).await;
    definition["status"] = json!("ACTIVE");
    world.save("w", definition).await;
    world.lead("again", 1).await;
    let runs = world.until_runs("w", 2).await;
    assert_eq!(ids(&runs), ["while", "again"]);
    assert_eq!(triggered(&runs[1]).workflow_version, 3);
}

#[tokio::test]
async fn workflows_that_set_each_other_off_end() {
    let world = World::new().await;
    let tell = notify("tell", &json!({ "n": "{{ trigger.n + 1 }}" }));
    world
        .save(
            "w",
            workflow(&[on(&json!({ "event": "custom.told" })), tell]),
        )
        .await;
    let _runner = world.runner().await;
    let first = world.trigger("w", json!({ "n": 0 })).await;
    world.ended(&first).await;
    // The first on its own, and eight triggered by events.
    let runs = world.until_runs("w", 9).await;
    for run in &runs {
        world.ended(&triggered(run).run_id).await;
    }
    world.lead_after_hops("last", 1, 8).await;
    assert_eq!(world.runs_of("w").await.len(), 9);
}

#[tokio::test]
async fn the_life_of_its_own_runs_does_not_set_a_workflow_off() {
    let world = World::new().await;
    world
        .save("own", workflow(&[on(&json!({ "event": "run.*" }))]))
        .await;
    world
        .save(
            "other",
            workflow(&[on(&json!({ "event": "run.succeeded" }))]),
        )
        .await;
    let _runner = world.runner().await;
    let first = world.trigger("own", json!({})).await;
    world.ended(&first).await;
    let others = world.until_runs("other", 1).await;
    world.ended(&triggered(&others[0]).run_id).await;
    // The other workflow's runs have triggered it in turn, its own have not.
    let runs = world.until_runs("own", 2).await;
    let causes = runs[1..].iter().map(|run| run.context.causation_id.clone());
    let own = world.events(&first).await;
    let own: Vec<_> = own.iter().map(|event| Some(event.id.to_string())).collect();
    assert!(causes.into_iter().all(|cause| !own.contains(&cause)));
}

#[tokio::test]
async fn a_filter_that_fails_sets_nothing_off_and_stops_nothing() {
    let world = World::new().await;
    let listening = |filter: &str| on(&json!({ "event": "lead.created", "filter": filter }));
    world
        .save("wrong", workflow(&[listening("data.nobody.knows > 1")]))
        .await;
    world
        .save("right", workflow(&[listening("data.score > 1")]))
        .await;
    let _runner = world.runner().await;
    world.lead("a", 2).await;
    world.lead("b", 2).await;
    world.until_runs("right", 2).await;
    assert!(world.runs_of("wrong").await.is_empty());
}

/// Kills the runner repeatedly at arbitrary moments, with another one beside it half of the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_event_sets_off_one_run_whatever_is_killed_and_when() {
    let world = World::new().await;
    world
        .save("w", workflow(&[on(&json!({ "event": "lead.created" }))]))
        .await;
    let mut leads = Vec::new();
    for round in 0..6_u64 {
        let runner = world.runner().await;
        let other = if round % 2 == 0 {
            Some(world.runner().await)
        } else {
            None
        };
        for nth in 0..15 {
            let id = format!("lead-{round}-{nth}");
            world.lead(&id, 1).await;
            leads.push(Value::from(id));
        }
        tokio::time::sleep(Duration::from_millis(30 + round * round * 41 % 900)).await;
        runner.kill().await;
        if let Some(other) = other {
            other.kill().await;
        }
    }
    let _runner = world.runner().await;
    let runs = world.until_runs("w", leads.len()).await;
    for run in &runs {
        world.ended(&triggered(run).run_id).await;
    }
    let runs = world.runs_of("w").await;
    let mut found: Vec<String> = ids(&runs).iter().map(ToString::to_string).collect();
    found.sort_unstable();
    let mut wanted: Vec<String> = leads.iter().map(ToString::to_string).collect();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
}

#[tokio::test]
async fn events_that_are_judged_again_begin_nothing_again() {
    let world = World::new().await;
    world
        .save("w", workflow(&[on(&json!({ "event": "lead.created" }))]))
        .await;
    let runner = world.runner().await;
    for nth in 0..5 {
        world.lead(&format!("lead-{nth}"), 1).await;
    }
    world.until_runs("w", 5).await;
    runner.kill().await;
    let name = CheckpointBucket::Runner.name();
    let bucket = world.log.bucket(name, None).await.unwrap();
    for partition in 0..PARTITIONS {
        bucket.purge(format!("triggers.{partition}")).await.unwrap();
    }
    let _runner = world.runner().await;
    world.lead("last", 1).await;
    let runs = world.until_runs("w", 6).await;
    assert_eq!(ids(&runs).last(), Some(&&json!("last")));
    assert_eq!(runs.len(), 6);
}

#[tokio::test]
async fn one_organizations_flood_does_not_delay_another() {
    let (world, few) = (World::new().await, OrgId::from("few"));
    let definition = workflow(&[on(&json!({ "event": "lead.created" }))]);
    world.save("w", definition.clone()).await;
    let other = world.beside(&few);
    other.save("w", definition).await;
    let ids: Vec<String> = (0..600).map(|nth| format!("lead-{nth}")).collect();
    let flood = ids.iter().map(|id| world.lead(id, 1));
    futures::future::join_all(flood).await;
    other.lead("only", 1).await;
    let _runner = world.runner().await;
    let only = other.until_runs("w", 1).await;
    let all = world.until_runs("w", 600).await;
    let before = all.iter().filter(|run| run.sequence < only[0].sequence);
    assert!(before.count() <= 512, "it waited for the whole flood");
}

/// Saves a workflow scheduled for every minute, with a time in the past.
async fn save_back_then(world: &World, id: &str, at: DateTime<Utc>) {
    let workflow_id = WorkflowId::from(id);
    let definition = workflow(&[on(&json!({ "schedule": "* * * * *" }))]);
    let definition = domain::workflow::parse(&workflow_id, definition).unwrap();
    let stream = StreamId::new(&world.org, AggregateType::Workflow, id);
    let saved = Event::WorkflowSaved(Saved {
        workflow_id,
        version: 1,
        definition,
    });
    world.append_at(&stream, saved, at).await;
}

#[tokio::test]
async fn the_last_time_that_was_missed_is_made_up_for_once() {
    let world = World::new().await;
    let began = Utc::now();
    save_back_then(&world, "w", began - TimeDelta::minutes(30)).await;
    let first = world.runner().await;
    let runs = world.until_runs("w", 1).await;
    let payload = &triggered(&runs[0]).trigger_payload;
    assert_eq!(payload["triggeredBy"], "schedule");
    let due = payload["scheduledFor"].as_str().unwrap();
    let due = DateTime::parse_from_rfc3339(due).unwrap().to_utc();
    assert!(
        due.second() == 0 && began - due < TimeDelta::seconds(70),
        "{due}"
    );
    // The next runner finds it done.
    let second = world.runner().await;
    first.kill().await;
    second.kill().await;
    let _third = world.runner().await;
    save_back_then(&world, "seen", began - TimeDelta::minutes(30)).await;
    world.until_runs("seen", 1).await;
    let runs = world.runs_of("w").await;
    let times: Vec<&Value> = runs
        .iter()
        .map(|run| &triggered(run).trigger_payload["scheduledFor"])
        .collect();
    let mut unique = times.clone();
    unique.dedup();
    assert_eq!(times, unique);
    let since = (Utc::now() - began).num_minutes() + 2;
    assert!(i64::try_from(runs.len()).unwrap() <= since, "{times:?}");
}

#[tokio::test]
async fn a_workflow_that_was_just_saved_makes_up_for_nothing() {
    let world = World::new().await;
    let _runner = world.runner().await;
    // Nothing was missed since this minute began.
    let saved_at = Utc::now();
    save_back_then(&world, "new", saved_at).await;
    save_back_then(&world, "old", saved_at - TimeDelta::minutes(3)).await;
    world.until_runs("old", 1).await;
    let runs = world.runs_of("new").await;
    let early = runs.iter().any(|run| run.time < saved_at);
    assert!(!early && runs.len() <= 1);
}
