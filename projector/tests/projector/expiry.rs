//! Deliveries expire in the read model where their events do in the log.

use chrono::TimeDelta;
use event_log::{Commit, Expected, Write};
use projector::{Pace, rebuild};
use schemas::delivery::{Attempted, Message, Outcome, Queued};
use schemas::{AggregateType, Event, EventId, Log};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::equality::assert_equal;
use crate::support::{World, eventually, new_event, now};

fn message(delivery: &str) -> Message {
    Message {
        delivery_id: delivery.into(),
        webhook_id: "h1".into(),
        event_id: EventId(Uuid::new_v4()),
        event_sequence: 7,
        event_type: "run.succeeded".to_owned(),
    }
}

fn attempted(delivery: &str, attempt: u32, outcome: Outcome) -> Event {
    Event::DeliveryAttempted(Attempted {
        message: message(delivery),
        attempt,
        at: now(),
        duration_ms: attempt.into(),
        status: None,
        error: None,
        response: None,
        outcome,
    })
}

/// Appends an event that was written the given number of days ago.
async fn append(world: &World, delivery: &str, seen: Option<u64>, days: i64, event: Event) -> u64 {
    let mut event = new_event(event);
    event.time -= TimeDelta::days(days);
    if let Event::DeliveryAttempted(attempted) = &mut event.event {
        attempted.at = event.time;
    }
    let write = Write {
        stream: world.stream(AggregateType::Delivery, delivery),
        expected: Expected::after(seen),
        events: vec![event],
    };
    let appended = world.log.commit(Commit::from(write)).await;
    appended.unwrap().sequence()
}

async fn text(world: &World, sql: &'static str) -> Value {
    sqlx::query_scalar(sql)
        .fetch_one(&world.pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_delivery_is_pending_while_it_is_queued_again() {
    let world = World::new().await;
    let projector = world.start();
    let first = attempted("d1", 1, Outcome::Failed);
    let at = append(&world, "d1", None, 0, first).await;
    let queued = Event::DeliveryQueued(Queued {
        message: message("d1"),
        request_id: EventId(Uuid::new_v4()),
        attempts: 1,
    });
    let at = append(&world, "d1", Some(at), 0, queued).await;
    let fresh = Event::DeliveryQueued(Queued {
        message: message("d2"),
        request_id: EventId(Uuid::new_v4()),
        attempts: 0,
    });
    append(&world, "d2", None, 0, fresh).await;
    world.caught_up(Log::Deliveries, at + 1).await;
    let state = "SELECT json_agg(json_build_array(delivery_id, status, next_attempt_at IS NULL,
        jsonb_array_length(attempts)) ORDER BY delivery_id) FROM deliveries";
    let waiting = json!([["d1", "PENDING", false, 1], ["d2", "PENDING", false, 0]]);
    assert_eq!(text(&world, state).await, waiting);
    let again = attempted("d1", 2, Outcome::Succeeded);
    let at = append(&world, "d1", Some(at), 0, again).await;
    world.caught_up(Log::Deliveries, at).await;
    let ended = json!(["d1", "SUCCEEDED", true, 2]);
    assert_eq!(text(&world, state).await[0], ended);
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn a_delivery_keeps_its_last_hundred_attempts_whatever_the_batches() {
    let world = World::new().await;
    let stream = world.stream(AggregateType::Delivery, "d1");
    let failed = |attempt| attempted("d1", attempt, Outcome::Failed);
    let first = (1..=150).map(failed).collect();
    let at = world.append(stream.clone(), 0, first).await;
    let projector = world.start();
    world.caught_up(Log::Deliveries, at).await;
    let kept = "SELECT json_build_array(jsonb_array_length(attempts),
        attempts -> 0 -> 'durationMs', attempts -> -1 -> 'durationMs') FROM deliveries";
    assert_eq!(text(&world, kept).await, json!([100, 51, 150]));

    let next = (151..=153).map(failed).collect();
    let at = world.append(stream.clone(), at, next).await;
    let queued = Event::DeliveryQueued(Queued {
        message: message("d1"),
        request_id: EventId(Uuid::new_v4()),
        attempts: 153,
    });
    let at = world.append(stream, at, vec![queued]).await;
    world.caught_up(Log::Deliveries, at).await;
    assert_eq!(text(&world, kept).await, json!([100, 54, 153]));
    // All in one batch gives the same.
    assert_equal(&world, "deliveries").await;
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn attempts_that_are_too_old_are_deleted_while_their_delivery_goes_on() {
    let world = World::new().await;
    let projector = world.start();
    let mut at = None;
    for (attempt, days) in [(1, 40), (2, 31), (3, 29), (4, 0)] {
        let event = attempted("d1", attempt, Outcome::Failed);
        at = Some(append(&world, "d1", at, days, event).await);
    }
    world.caught_up(Log::Deliveries, at.unwrap()).await;
    projector.stop().await;
    // A projector sweeps when it starts.
    let projector = world.start();
    let left = "SELECT count(*) FROM deliveries
        WHERE attempts -> 0 -> 'durationMs' = '3' AND jsonb_array_length(attempts) = 2";
    eventually("what is old to be gone", async || {
        world.count(left).await == 1
    })
    .await;
    assert_equal(&world, "deliveries").await;
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn deliveries_whose_last_event_is_too_old_are_deleted_and_counted_no_more() {
    const OLD: usize = 1_100;
    let world = World::new().await;
    let projector = world.start();
    let retrying = || Outcome::Retrying {
        next_attempt_at: now(),
    };
    for nth in 0..OLD {
        let outcome = if nth % 2 == 0 {
            Outcome::Succeeded
        } else {
            retrying()
        };
        let delivery = format!("old{nth}");
        append(
            &world,
            &delivery,
            None,
            31,
            attempted(&delivery, 1, outcome),
        )
        .await;
    }
    let at = append(
        &world,
        "again",
        None,
        31,
        attempted("again", 1, Outcome::Failed),
    )
    .await;
    append(
        &world,
        "again",
        Some(at),
        1,
        attempted("again", 2, Outcome::Failed),
    )
    .await;
    let last = attempted("new", 1, Outcome::Succeeded);
    let at = append(&world, "new", None, 29, last).await;
    world.caught_up(Log::Deliveries, at).await;
    projector.stop().await;
    // A projector sweeps when it starts.
    let projector = world.start();
    eventually("what is old to be gone", async || {
        world.count("SELECT count(*) FROM deliveries").await == 2
    })
    .await;
    let left = "SELECT json_agg(delivery_id ORDER BY delivery_id) FROM deliveries";
    assert_eq!(text(&world, left).await, json!(["again", "new"]));
    let totals = "SELECT json_object_agg(state, count) FROM totals WHERE kind = 'deliveries'";
    let counted = json!({"SUCCEEDED": 1, "PENDING": 0, "FAILED": 1});
    assert_eq!(text(&world, totals).await, counted);
    projector.stop().await;
    world.end().await;
}

/// The lock that old deliveries are deleted under.
const EXPIRING: i64 = 0x7761_7970_6f73_7402;

#[tokio::test]
async fn copies_of_deliveries_are_filled_without_the_lock_that_deletes_old_ones() {
    let world = World::new().await;
    let projector = world.start();
    let ended = attempted("d1", 1, Outcome::Succeeded);
    let at = append(&world, "d1", None, 0, ended).await;
    world.caught_up(Log::Deliveries, at).await;
    projector.stop().await;
    let mut deleting = world.pool.acquire().await.unwrap();
    sqlx::query("SELECT pg_advisory_lock($1)")
        .bind(EXPIRING)
        .execute(&mut *deleting)
        .await
        .unwrap();
    assert_equal(&world, "deliveries").await;
    let stop = CancellationToken::new();
    let names = ["deliveries"];
    let rebuilt = rebuild(
        &world.log,
        &world.pool,
        &names,
        Pace::default(),
        &|_| (),
        &stop,
    )
    .await;
    assert_eq!(rebuilt.unwrap()[0].position.sequence(), at);
    deleting.close().await.unwrap();
    world.end().await;
}
