//! Events of persons, delivered to the organizations whose circles they joined.

use std::collections::HashSet;

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde_json::Value;

use super::{Attempts, Receiver, Runner};
use crate::support::World;

fn bodies(receiver: &Receiver) -> Vec<Value> {
    let received = receiver.received();
    received.iter().map(super::Received::json).collect()
}

#[tokio::test]
async fn an_organization_gets_the_positions_of_its_circles_members() {
    let world = World::new().await;
    let access = world.access().await;
    let receiver = Receiver::start().await;
    let runner = Runner::start(&world).await;
    let (anna, ben) = (
        world.person(&access, "Anna").await,
        world.person(&access, "Ben").await,
    );
    world.fix(&anna, 0.5, "before the circle").await;
    let circle = world.org_circle(&[&anna]).await;
    world.fix(&anna, 0.6, "before the webhook").await;
    world.webhook(&receiver.url("/l"), &["location.*"]).await;
    world.webhook(&receiver.url("/p"), &["place.*"]).await;
    world.neighbour().webhook(&receiver.url("/n"), &[]).await;
    let mut log = Attempts::follow(&world).await;
    let position = world.fix(&anna, 1.0, "office").await;
    world.fix(&ben, 2.0, "no member").await;
    world.cross(&circle, &anna).await;
    log.until_ended(2).await;
    let mut bodies = bodies(&receiver);
    bodies.sort_by_key(|body| body["type"].as_str().unwrap().to_owned());
    let [fix, crossing] = &bodies[..] else {
        panic!("{bodies:?}");
    };
    assert_eq!(fix["type"], "location.updated");
    assert_eq!(fix["position"], position.to_string());
    assert_eq!(fix["data"]["user_id"], anna.id.0);
    assert_eq!(fix["data"]["lat"], 1.0);
    assert_eq!(fix["data"]["place_name"], "office");
    assert!(fix["data"].get("sealed").is_none());
    assert_eq!(crossing["type"], "place.entered");
    assert_eq!(crossing["data"]["name"], "School");

    world.leave(&circle, &anna).await;
    world.fix(&anna, 3.0, "gone").await;
    world.join(&circle, &anna).await;
    world.fix(&anna, 4.0, "back").await;
    log.until_ended(1).await;
    let last = receiver.received().last().unwrap().json();
    assert_eq!(last["data"]["place_name"], "back");
    assert_eq!(receiver.received().len(), 3);
    runner.stop().await;
}

#[tokio::test]
async fn what_waits_for_a_retry_is_not_sent_once_its_person_has_left() {
    let world = World::new().await;
    let access = world.access().await;
    let receiver = Receiver::start().await;
    receiver.answer(500);
    let runner = Runner::start(&world).await;
    let anna = world.person(&access, "Anna").await;
    let circle = world.org_circle(&[&anna]).await;
    world.webhook(&receiver.url("/"), &["location.*"]).await;
    let mut log = Attempts::follow(&world).await;
    let (left, leaving) = tokio::sync::oneshot::channel::<()>();
    let gate = std::sync::Mutex::new(Some(left));
    receiver.reply(move |_, _| {
        gate.lock().unwrap().take();
        StatusCode::INTERNAL_SERVER_ERROR.into_response()
    });
    world.fix(&anna, 1.0, "office").await;
    let _ = leaving.await;
    world.leave(&circle, &anna).await;
    let sent = receiver.received().len();
    let made = log.until_ended(1).await;
    assert!(made.len() > 1, "{made:?}");
    // One may have been in flight while the leaving was written.
    assert!(receiver.received().len() <= sent + 1);
    let last = made.last().unwrap();
    assert!(
        last.error
            .as_ref()
            .unwrap()
            .contains("may no longer be shown")
    );
    runner.stop().await;
}

#[tokio::test]
async fn a_restart_sends_positions_of_meanwhile_and_nothing_twice() {
    let world = World::new().await;
    let access = world.access().await;
    let receiver = Receiver::start().await;
    let anna = world.person(&access, "Anna").await;
    world.org_circle(&[&anna]).await;
    let runner = Runner::start(&world).await;
    world.webhook(&receiver.url("/"), &[]).await;
    let mut log = Attempts::follow(&world).await;
    world.walk(&anna, 100, 10).await;
    world.contacts(0..100, 0).await;
    log.until_ended(200).await;
    runner.stop().await;
    world.walk(&anna, 100, 10).await;
    world.contacts(100..200, 0).await;
    let runner = Runner::start(&world).await;
    log.until_ended(200).await;
    let received = receiver.received();
    let ids: HashSet<&str> = received.iter().map(|r| r.header("webhook-id")).collect();
    assert_eq!((received.len(), ids.len()), (400, 400));
    runner.stop().await;
}
