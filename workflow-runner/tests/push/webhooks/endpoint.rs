//! Endpoints that change while they are served.

use std::time::Duration;

use schemas::delivery::Outcome;
use schemas::webhook::{Deleted, Status, Updated};
use schemas::{Event, WebhookId};
use workflow_runner::webhooks::WebhookSettings;

use super::{Attempts, Receiver, Runner, settings};
use crate::support::{Hook, World, eventually};

fn patient() -> WebhookSettings {
    WebhookSettings {
        retries: vec![Duration::from_hours(1)],
        ..settings()
    }
}

async fn change(world: &World, hook: &Hook, url: String, status: Status) {
    let last = world.log.last(&hook.stream).await.unwrap().unwrap();
    let updated = Event::WebhookUpdated(Updated {
        id: WebhookId::from(hook.id.as_str()),
        url,
        events: vec!["contact.*".to_owned()],
        description: None,
        status,
    });
    world.append(&hook.stream, last.sequence, updated).await;
}

#[tokio::test]
async fn a_changed_address_counts_from_the_next_attempt_on() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    let runner = Runner::start(&world).await;
    let hook = world.webhook(&receiver.url("/old"), &["contact.*"]).await;
    world.contacts(0..1, 0).await;
    receiver.wait_for(1).await;
    change(&world, &hook, receiver.url("/new"), Status::Enabled).await;
    world.contacts(1..2, 0).await;
    let paths: Vec<_> = receiver
        .wait_for(2)
        .await
        .into_iter()
        .map(|r| r.path)
        .collect();
    assert_eq!(paths, ["/old", "/new"]);
    runner.stop().await;
}

#[tokio::test]
async fn a_disabled_endpoint_misses_what_happens_until_it_is_enabled() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    let runner = Runner::start(&world).await;
    let url = receiver.url("/");
    let hook = world.webhook(&url, &["contact.*"]).await;
    world.contacts(0..1, 0).await;
    receiver.wait_for(1).await;
    change(&world, &hook, url.clone(), Status::Disabled).await;
    world.contacts(1..2, 0).await;
    change(&world, &hook, url, Status::Enabled).await;
    world.contacts(2..3, 0).await;
    let ids: Vec<_> = receiver
        .wait_for(2)
        .await
        .iter()
        .map(super::Received::contact)
        .collect();
    assert_eq!(ids, ["c0", "c2"]);
    runner.stop().await;
}

#[tokio::test]
async fn a_deleted_endpoint_gets_nothing_and_what_waits_has_failed() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    receiver.answer(500);
    let runner = Runner::with(&world, patient()).await;
    let hook = world.webhook(&receiver.url("/"), &["contact.*"]).await;
    let mut log = Attempts::follow(&world).await;
    world.contacts(0..3, 0).await;
    receiver.wait_for(3).await;
    let last = world.log.last(&hook.stream).await.unwrap().unwrap();
    let id = WebhookId::from(hook.id.as_str());
    let deleted = Event::WebhookDeleted(Deleted { id });
    world.append(&hook.stream, last.sequence, deleted).await;
    world.contacts(3..4, 0).await;
    let made = log.until_ended(3).await;
    let ended = made.iter().filter(|made| made.outcome == Outcome::Failed);
    assert_eq!(ended.count(), 3);
    assert_eq!(receiver.received().len(), 3);
    runner.stop().await;
}

#[tokio::test]
async fn what_waits_for_an_endpoint_deleted_meanwhile_ends_at_the_next_start() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    receiver.answer(500);
    let runner = Runner::with(&world, patient()).await;
    let hook = world.webhook(&receiver.url("/"), &["contact.*"]).await;
    world.contacts(0..3, 0).await;
    receiver.wait_for(3).await;
    runner.stop().await;
    let last = world.log.last(&hook.stream).await.unwrap().unwrap();
    let id = WebhookId::from(hook.id.as_str());
    let deleted = Event::WebhookDeleted(Deleted { id });
    world.append(&hook.stream, last.sequence, deleted).await;
    let mut log = Attempts::follow(&world).await;
    let runner = Runner::with(&world, patient()).await;
    log.until_ended(3).await;
    assert_eq!(receiver.received().len(), 3);
    runner.stop().await;
}

#[tokio::test]
async fn an_endpoint_with_too_much_to_try_again_catches_up_once_it_answers() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    receiver.answer(500);
    let settings = WebhookSettings {
        pending: 50,
        retries: vec![Duration::from_millis(500); 100],
        ..settings()
    };
    let runner = Runner::with(&world, settings).await;
    world.webhook(&receiver.url("/"), &["contact.*"]).await;
    world.contacts(0..1_000, 0).await;
    // More than may be attempted before the first outcomes are recorded, however slow the disk is.
    receiver.wait_for(800).await;
    let seen = |receiver: &Receiver| {
        let mut ids: Vec<_> = receiver
            .received()
            .iter()
            .map(super::Received::contact)
            .collect();
        ids.sort();
        ids.dedup();
        ids.len()
    };
    let tried = seen(&receiver);
    assert!(
        tried < 650,
        "{tried} events were tried while it only failed"
    );
    receiver.answer(200);
    eventually("all events to arrive", async || seen(&receiver) == 1_000).await;
    runner.stop().await;
}
