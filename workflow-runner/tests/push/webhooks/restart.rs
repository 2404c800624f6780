//! Restarts, crashes and several processes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta};
use event_log::{CheckpointBucket, Commit};
use schemas::delivery::{Attempted, Message, Outcome};
use schemas::{AggregateType, Event, EventId, StreamId};
use service::clock::ManualClock;
use uuid::Uuid;
use workflow_runner::leases::PARTITIONS;
use workflow_runner::webhooks::WebhookSettings;

use super::{Attempts, Receiver, Runner, settings};
use crate::support::{World, contact, eventually, write};

/// How often each contact arrived.
fn counts(receiver: &Receiver) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for received in receiver.received() {
        *counts.entry(received.contact()).or_default() += 1;
    }
    counts
}

#[tokio::test]
async fn a_restart_sends_what_happened_meanwhile_and_nothing_twice() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    let runner = Runner::start(&world).await;
    world.webhook(&receiver.url("/"), &["contact.*"]).await;
    let mut log = Attempts::follow(&world).await;
    world.contacts(0..300, 0).await;
    log.until_ended(300).await;
    runner.stop().await;
    world.contacts(300..600, 0).await;
    let runner = Runner::start(&world).await;
    log.until_ended(300).await;
    world.contacts(600..601, 0).await;
    log.until_ended(1).await;
    assert_eq!(receiver.received().len(), 601);
    assert_eq!(counts(&receiver).len(), 601);
    runner.stop().await;
}

/// As after a restore: the log of attempts may no longer contain the outcome of old events.
#[tokio::test]
async fn without_a_checkpoint_only_what_attempts_may_still_tell_of_is_sent() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    world.webhook(&receiver.url("/"), &["contact.*"]).await;
    for (id, days) in [("old", 31), ("older", 400)] {
        let stream = StreamId::new(&world.org, AggregateType::Contact, id);
        let mut write = write(&stream, 0, vec![contact(id, 0)]);
        write.events[0].time -= TimeDelta::days(days);
        world.log.commit(write.into()).await.unwrap();
    }
    world.contacts(0..3, 0).await;
    let mut log = Attempts::follow(&world).await;
    let runner = Runner::start(&world).await;
    log.until_ended(3).await;
    world.contacts(3..4, 0).await;
    log.until_ended(1).await;
    let mut arrived: Vec<_> = counts(&receiver).into_iter().collect();
    arrived.sort();
    let expected = [0, 1, 2, 3].map(|id| (format!("c{id}"), 1));
    assert_eq!(arrived, expected);
    runner.stop().await;
}

#[tokio::test]
async fn a_retry_outlives_the_process_that_planned_it() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    receiver.answer(500);
    let settings = WebhookSettings {
        retries: vec![Duration::from_secs(3)],
        ..settings()
    };
    let runner = Runner::with(&world, settings.clone()).await;
    world.webhook(&receiver.url("/"), &["contact.*"]).await;
    let mut log = Attempts::follow(&world).await;
    world.contacts(0..20, 0).await;
    receiver.wait_for(20).await;
    runner.stop().await;
    receiver.answer(200);
    let runner = Runner::with(&world, settings).await;
    let made = log.until_ended(20).await;
    assert_eq!(made.len(), 40);
    for made in made.iter().filter(|made| made.attempt == 2) {
        assert_eq!(made.outcome, Outcome::Succeeded);
    }
    assert!(counts(&receiver).values().all(|count| *count == 2));
    runner.stop().await;
}

/// Attempts of others, more than are read again.
async fn attempts_of_others(world: &World) {
    const STREAMS: u64 = 110;
    const EACH: usize = 100;
    let others = world.neighbour();
    let commits = (0..STREAMS).map(|nth| {
        let id = format!("msg_{nth}");
        let attempted = Event::DeliveryAttempted(Attempted {
            message: Message {
                delivery_id: id.as_str().into(),
                webhook_id: "theirs".into(),
                event_id: EventId(Uuid::nil()),
                event_sequence: 1,
                event_type: "contact.created".to_owned(),
            },
            attempt: 1,
            at: DateTime::UNIX_EPOCH,
            duration_ms: 1,
            status: Some(200),
            error: None,
            response: None,
            outcome: Outcome::Succeeded,
        });
        let stream = StreamId::new(&others.org, AggregateType::Delivery, &id);
        write(&stream, 0, vec![attempted; EACH]).into()
    });
    // No more at a time than a busy machine writes before an append times out.
    let commits: Vec<Commit> = commits.collect();
    for some in commits.chunks(10) {
        for appended in world.log.commit_each(some.to_vec()).await {
            appended.unwrap();
        }
    }
}

/// Whether a checkpoint names a waiting delivery.
async fn is_one_named(world: &World) -> bool {
    /// A version, the position and the body's format, the position in the deliveries' log, and the
    /// records named up to there.
    type Beginning = (u8, (u32, u64, u8), (u64, Vec<u64>));
    let name = CheckpointBucket::Runner.name();
    let bucket = world.log.bucket(name, None).await.unwrap();
    for partition in 0..PARTITIONS {
        let stored = bucket.get(&format!("webhooks.{partition}")).await.unwrap();
        let Some(stored) = stored else { continue };
        let (beginning, _) = postcard::take_from_bytes::<Beginning>(&stored).unwrap();
        let (_, _, (_, named)) = beginning;
        if !named.is_empty() {
            return true;
        }
    }
    false
}

#[tokio::test]
async fn a_retry_is_made_however_much_others_had_delivered_meanwhile() {
    let mut world = World::new().await;
    let receiver = Receiver::start().await;
    receiver.answer(500);
    let settings = WebhookSettings {
        retries: vec![Duration::from_hours(1)],
        ..settings()
    };
    let runner = Runner::with(&world, settings.clone()).await;
    world.webhook(&receiver.url("/"), &["contact.*"]).await;
    world.contacts(0..1, 0).await;
    receiver.wait_for(1).await;
    attempts_of_others(&world).await;
    receiver.answer(200);
    // Its own deliveries show it how far the log has advanced.
    world.contacts(1..2, 0).await;
    receiver.wait_for(2).await;
    runner.stop().await;
    assert!(is_one_named(&world).await);
    world.clock = Arc::new(ManualClock::new(world.clock.now() + TimeDelta::hours(2)));
    let runner = Runner::with(&world, settings).await;
    let received = receiver.wait_for(3).await;
    assert_eq!(received[2].contact(), "c0");
    runner.stop().await;
    assert!(!is_one_named(&world).await);
}

/// Kills and restarts a runner repeatedly while events come in: each event arrives, and its
/// delivery is recorded as succeeded exactly once, under one id.
#[tokio::test]
async fn sudden_deaths_lose_nothing() {
    const COUNT: usize = 1_200;
    let world = World::new().await;
    let receiver = Receiver::start().await;
    receiver.reply(|_, number| {
        let code = if number % 5 == 0 { 500 } else { 200 };
        axum::response::IntoResponse::into_response(axum::http::StatusCode::from_u16(code).unwrap())
    });
    let settings = WebhookSettings {
        retries: vec![Duration::from_millis(100); 50],
        ..settings()
    };
    let mut log = Attempts::follow(&world).await;
    world.webhook(&receiver.url("/"), &["contact.*"]).await;
    let appending = async {
        for start in (0..COUNT).step_by(20) {
            world.contacts(start..start + 20, 0).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let dying = async {
        for round in 1..=3 {
            let runner = Runner::with(&world, settings.clone()).await;
            receiver.wait_for(round * COUNT / 4).await;
            runner.kill().await;
        }
        Runner::with(&world, settings.clone()).await
    };
    let ending = log.until_ended(COUNT);
    let ((), runner, made) = tokio::join!(appending, dying, ending);
    runner.stop().await;
    assert_eq!(counts(&receiver).len(), COUNT);
    let succeeded = made
        .iter()
        .filter(|made| made.outcome == Outcome::Succeeded);
    assert_eq!(succeeded.count(), COUNT);
    let mut ids = HashMap::new();
    for received in receiver.received() {
        let id = received.header("webhook-id").to_owned();
        assert_eq!(ids.entry(received.contact()).or_insert(id.clone()), &id);
    }
}

#[tokio::test]
async fn processes_share_endpoints_and_take_over_from_the_dead() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    for nth in 0..12 {
        let path = format!("/{nth}");
        world.webhook(&receiver.url(&path), &["contact.*"]).await;
    }
    let first = Runner::start(&world).await;
    let second = Runner::start(&world).await;
    let mut log = Attempts::follow(&world).await;
    world.contacts(0..50, 0).await;
    log.until_ended(50 * 12).await;
    // Ownership may have moved meanwhile: an event sent twice was recorded once.
    let before = receiver.received().len();
    assert!((600..660).contains(&before), "{before}");
    first.kill().await;
    let died = Instant::now();
    world.contacts(50..60, 0).await;
    log.until_ended(10 * 12).await;
    assert!(
        died.elapsed() < Duration::from_secs(5),
        "{:?}",
        died.elapsed()
    );
    eventually("all to have arrived", async || {
        counts(&receiver).len() == 60
    })
    .await;
    second.stop().await;
}
