//! What happens when receivers fail.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use chrono::Utc;
use schemas::delivery::Outcome;
use schemas::{AggregateType, StreamId};
use service::clock::ManualClock;
use workflow_runner::webhooks::WebhookSettings;

use super::{Attempts, Receiver, Runner, disabled, settings};
use crate::support::{World, contact, contact_deleted};

fn status(code: u16) -> Response {
    StatusCode::from_u16(code).unwrap().into_response()
}

#[tokio::test]
async fn a_failure_is_tried_again_under_the_same_id_until_it_succeeds() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    receiver.reply(|_, number| status(if number < 3 { 500 } else { 204 }));
    let runner = Runner::start(&world).await;
    world.webhook(&receiver.url("/"), &["run.started"]).await;
    let mut log = Attempts::follow(&world).await;
    world.run().await;
    let made = log.until_ended(1).await;
    let numbers: Vec<_> = made
        .iter()
        .map(|made| (made.attempt, made.status))
        .collect();
    assert_eq!(numbers, [(1, Some(500)), (2, Some(500)), (3, Some(204))]);
    assert!(matches!(made[0].outcome, Outcome::Retrying { .. }));
    assert_eq!(made[2].outcome, Outcome::Succeeded);

    let requests = receiver.received();
    assert_eq!(requests.len(), 3);
    for request in &requests {
        assert_eq!(
            request.header("webhook-id"),
            requests[0].header("webhook-id")
        );
        assert_eq!(request.body, requests[0].body);
    }
    let waits = [1, 2].map(|nth| requests[nth].at - requests[nth - 1].at);
    assert!(waits[0] >= Duration::from_millis(100), "{waits:?}");
    assert!(waits[1] >= Duration::from_millis(200), "{waits:?}");
    runner.stop().await;
}

#[tokio::test]
async fn after_the_last_attempt_the_delivery_has_failed() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    receiver.answer(404);
    let runner = Runner::start(&world).await;
    world.webhook(&receiver.url("/"), &["run.started"]).await;
    let mut log = Attempts::follow(&world).await;
    world.run().await;
    let made = log.until_ended(1).await;
    assert_eq!(made.len(), 3);
    assert_eq!(made[2].outcome, Outcome::Failed);
    assert_eq!(made[2].error.as_deref(), Some("the receiver answered 404"));
    runner.stop().await;
}

#[tokio::test]
async fn an_erased_record_is_not_sent_again() {
    let clock = ManualClock::new(Utc::now());
    let world = World {
        clock: Arc::new(clock.clone()),
        ..World::new().await
    };
    let receiver = Receiver::start().await;
    receiver.reply(|received, _| {
        let is_created = received.json()["type"] == "contact.created";
        status(if is_created { 500 } else { 200 })
    });
    let settings = WebhookSettings {
        retries: vec![Duration::from_hours(1)],
        ..settings()
    };
    let runner = Runner::with(&world, settings).await;
    world.webhook(&receiver.url("/"), &["contact.*"]).await;
    let mut log = Attempts::follow(&world).await;
    let gone = StreamId::new(&world.org, AggregateType::Contact, "gone");
    let created = world.append(&gone, 0, contact("gone", 0)).await;
    receiver.wait_for(1).await;
    let deleted = contact_deleted("gone");
    world.append(&gone, created.sequence(), deleted).await;
    // The runner has seen that it was deleted.
    log.until_ended(1).await;
    world.log.erase(&gone).await.unwrap();
    clock.advance(Duration::from_hours(2));
    let made = log.until_ended(1).await.pop().unwrap();
    assert_eq!(made.outcome, Outcome::Failed);
    assert!(made.error.unwrap().contains("may no longer be shown"));
    assert_eq!(receiver.received().len(), 2);
    runner.stop().await;
}

#[tokio::test]
async fn a_receiver_may_ask_to_be_left_alone_for_longer() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    receiver.reply(|_, number| match number {
        1 => (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "1")]).into_response(),
        _ => status(200),
    });
    let runner = Runner::start(&world).await;
    world.webhook(&receiver.url("/"), &["run.started"]).await;
    world.run().await;
    let requests = receiver.wait_for(2).await;
    assert!(requests[1].at - requests[0].at >= Duration::from_secs(1));
    runner.stop().await;
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    receiver.reply(|_, _| (StatusCode::FOUND, [(header::LOCATION, "/elsewhere")]).into_response());
    let runner = Runner::start(&world).await;
    world.webhook(&receiver.url("/"), &["run.started"]).await;
    let mut log = Attempts::follow(&world).await;
    world.run().await;
    let made = log.until_ended(1).await;
    assert!(made[0].error.as_deref().unwrap().contains("redirect"));
    assert!(receiver.received().iter().all(|r| r.path == "/"));
    runner.stop().await;
}

#[tokio::test]
async fn no_answer_in_time_is_a_failure() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    receiver.delay(Duration::from_mins(1));
    let settings = WebhookSettings {
        timeout: Duration::from_millis(200),
        retries: Vec::new(),
        ..settings()
    };
    let runner = Runner::with(&world, settings).await;
    world
        .webhook(&receiver.url("/slow"), &["run.started"])
        .await;
    let mut log = Attempts::follow(&world).await;
    world.run().await;
    let made = log.until_ended(1).await.remove(0);
    assert_eq!((made.status, made.outcome), (None, Outcome::Failed));
    assert!(made.error.unwrap().contains("in time"));
    assert!(
        (200..1_500).contains(&made.duration_ms),
        "{}",
        made.duration_ms
    );
    runner.stop().await;
}

#[tokio::test]
async fn gone_disables_the_endpoint_at_once() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    receiver.answer(410);
    let runner = Runner::start(&world).await;
    let hook = world.webhook(&receiver.url("/"), &["run.started"]).await;
    let mut log = Attempts::follow(&world).await;
    world.run().await;
    let made = log.until_ended(1).await;
    assert_eq!(made.len(), 1, "410 is not tried again");
    assert!(disabled(&world, &hook).await.contains("410"));
    runner.stop().await;
}

#[tokio::test]
async fn nothing_but_failures_for_long_disables_the_endpoint_and_ends_what_waits() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    receiver.answer(500);
    let settings = WebhookSettings {
        retries: vec![Duration::from_millis(400), Duration::from_hours(1)],
        disable_after: Duration::from_millis(300),
        ..settings()
    };
    let runner = Runner::with(&world, settings).await;
    let hook = world.webhook(&receiver.url("/"), &["run.started"]).await;
    let mut log = Attempts::follow(&world).await;
    world.run().await;
    world.run().await;
    let reason = disabled(&world, &hook).await;
    assert!(reason.contains("only failures"), "{reason}");
    let made = log.until_ended(2).await;
    let given_up: Vec<_> = made
        .iter()
        .filter(|made| made.outcome == Outcome::Failed)
        .collect();
    assert_eq!(given_up.len(), 2);
    for made in given_up {
        assert!(made.error.as_deref().unwrap().contains("disabled"));
    }
    runner.stop().await;
}

#[tokio::test]
async fn an_endpoint_that_succeeds_now_and_then_is_kept() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    receiver.reply(|_, number| status(if number % 3 == 0 { 200 } else { 500 }));
    let settings = WebhookSettings {
        disable_after: Duration::from_millis(900),
        ..settings()
    };
    let runner = Runner::with(&world, settings).await;
    let hook = world.webhook(&receiver.url("/"), &["run.started"]).await;
    let mut log = Attempts::follow(&world).await;
    let started = std::time::Instant::now();
    while started.elapsed() < Duration::from_secs(2) {
        world.run().await;
        log.until_ended(1).await;
    }
    assert_eq!(world.events_of(&hook.stream).await.len(), 1, "only made");
    runner.stop().await;
}
