//! Runs that are forgotten with a person whose data they held.

use projector::{Pace, dead_letters, rebuild};
use schemas::run::Forgotten;
use schemas::{AggregateType, Event, Log};
use tokio_util::sync::CancellationToken;

use crate::equality::assert_equal;
use crate::runs::saved;
use crate::support::{World, started, triggered};

fn forgotten(run: &str) -> Event {
    Event::RunForgotten(Forgotten { run_id: run.into() })
}

/// Checks that exactly these runs are left, and are counted.
async fn assert_left(world: &World, expected: &[&str]) {
    let left: Vec<String> = sqlx::query_scalar("SELECT run_id FROM runs ORDER BY run_id")
        .fetch_all(&world.pool)
        .await
        .unwrap();
    assert_eq!(left, expected);
    let count = i64::try_from(expected.len()).unwrap();
    let total = "SELECT coalesce(sum(count), 0)::bigint FROM totals WHERE kind = 'runs'";
    assert_eq!(world.count(total).await, count);
    let of_all = "SELECT coalesce(sum(count), 0)::bigint FROM list_blocks
                  WHERE kind = 'runs' AND level = 1 AND state = ''";
    assert_eq!(world.count(of_all).await, count);
    let of_states = "SELECT coalesce(sum(count), 0)::bigint FROM list_blocks
                     WHERE kind = 'runs' AND level = 1 AND state <> ''";
    assert_eq!(world.count(of_states).await, count);
    assert_equal(world, "runs").await;
}

#[tokio::test]
async fn a_forgotten_run_leaves_no_row_and_is_no_longer_counted() {
    let world = World::new().await;
    let projector = world.start();
    let workflow = world.stream(AggregateType::Workflow, "w1");
    world.append(workflow, 0, vec![saved(1)]).await;
    let mut seen = Vec::new();
    for run in ["kept", "queued", "running"] {
        let stream = world.stream(AggregateType::Run, run);
        let mut events = vec![triggered(run, "w1", 1)];
        events.extend((run != "queued").then(|| started(run, "w1")));
        seen.push((run, world.append(stream, 0, events).await));
    }
    world.caught_up(Log::Events, seen[2].1).await;
    assert_left(&world, &["kept", "queued", "running"]).await;

    let mut end = 0;
    for (run, at) in &seen[1..] {
        let stream = world.stream(AggregateType::Run, run);
        end = world
            .append(stream.clone(), *at, vec![forgotten(run)])
            .await;
        world.log.erase_before(&stream, end).await.unwrap();
    }
    // One that was noted and had not begun.
    let never = world.stream(AggregateType::Run, "never");
    end = end.max(world.append(never, 0, vec![forgotten("never")]).await);
    world.caught_up(Log::Events, end).await;
    assert_left(&world, &["kept"]).await;

    projector.stop().await;
    let stop = CancellationToken::new();
    let rebuilt = rebuild(
        &world.log,
        &world.pool,
        &["runs"],
        Pace::default(),
        &|_| (),
        &stop,
    )
    .await;
    rebuilt.unwrap();
    assert_left(&world, &["kept"]).await;
    world.end().await;
}

#[tokio::test]
async fn a_run_that_begins_and_is_forgotten_in_one_batch_leaves_nothing() {
    let world = World::new().await;
    let workflow = world.stream(AggregateType::Workflow, "w1");
    world.append(workflow, 0, vec![saved(1)]).await;
    let stream = world.stream(AggregateType::Run, "r1");
    let events = vec![triggered("r1", "w1", 1), forgotten("r1")];
    let end = world.append(stream, 0, events).await;
    let projector = world.start();
    world.caught_up(Log::Events, end).await;
    assert_left(&world, &[]).await;
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn the_end_of_a_forgotten_run_waits_for_nothing_that_was_put_aside() {
    let world = World::new().await;
    let workflow = world.stream(AggregateType::Workflow, "w1");
    world.append(workflow, 0, vec![saved(1)]).await;
    let projector = world.start();
    // Its trigger is erased by the time that it is read.
    let late = world.stream(AggregateType::Run, "late");
    let left = world
        .append(late.clone(), 0, vec![started("late", "w1")])
        .await;
    // It has a row, and an event that cannot be applied.
    let broken = world.stream(AggregateType::Run, "broken");
    let twice = vec![triggered("broken", "w1", 1), triggered("broken", "w1", 1)];
    let again = world.append(broken.clone(), 0, twice).await;
    world.caught_up(Log::Events, again).await;
    assert_eq!(dead_letters(&world.pool).await.unwrap().len(), 2);
    let rows = "SELECT count(*) FROM runs";
    assert_eq!(world.count(rows).await, 1);

    world.append(late, left, vec![forgotten("late")]).await;
    let end = world.append(broken, again, vec![forgotten("broken")]).await;
    world.caught_up(Log::Events, end).await;
    let letters = dead_letters(&world.pool).await.unwrap();
    assert!(letters.is_empty(), "{letters:?}");
    assert_left(&world, &[]).await;
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn what_cannot_be_applied_of_a_run_is_not_kept_if_it_is_forgotten_in_the_same_batch() {
    let world = World::new().await;
    let late = world.stream(AggregateType::Run, "late");
    let events = vec![started("late", "w1"), forgotten("late")];
    let end = world.append(late, 0, events).await;
    let projector = world.start();
    world.caught_up(Log::Events, end).await;
    let letters = dead_letters(&world.pool).await.unwrap();
    assert!(letters.is_empty(), "{letters:?}");
    assert_left(&world, &[]).await;
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn a_copy_that_nobody_fills_is_dropped_when_a_run_is_forgotten() {
    let world = World::new().await;
    let projector = world.start();
    let workflow = world.stream(AggregateType::Workflow, "w1");
    let begun = world.append(workflow, 0, vec![saved(1)]).await;
    world.caught_up(Log::Events, begun).await;
    sqlx::query("CREATE SCHEMA rebuild_runs")
        .execute(&world.pool)
        .await
        .unwrap();
    let run = world.stream(AggregateType::Run, "gone");
    let end = world.append(run, 0, vec![forgotten("gone")]).await;
    world.caught_up(Log::Events, end).await;
    let copies = "SELECT count(*) FROM pg_namespace WHERE nspname = 'rebuild_runs'";
    assert_eq!(world.count(copies).await, 0);
    projector.stop().await;
    world.end().await;
}
