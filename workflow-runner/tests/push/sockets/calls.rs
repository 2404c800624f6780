//! The open calls for help that a subscription begins with.

use schemas::{AggregateType, Event, OrgId, SYSTEM_ORG, SosId, StreamId, sos};
use serde_json::{Value, json};
use uuid::Uuid;
use workflow_runner::live::SocketSettings;

use super::{Server, Socket};
use crate::people::Person;
use crate::support::World;

impl World {
    /// A call for help; returns its id.
    async fn call(&self, person: &Person, audience: &[&Person]) -> SosId {
        let id = SosId::from(Uuid::new_v4());
        self.sos_in(&OrgId::from(SYSTEM_ORG), &id, person, audience)
            .await;
        id
    }

    /// Somebody answers a call.
    async fn answer(&self, id: &SosId, by: &Person, event: fn(sos::Answered) -> Event) {
        let stream = StreamId::new(&OrgId::from(SYSTEM_ORG), AggregateType::Sos, id.as_str());
        let first = self.log.first(&stream).await.unwrap().unwrap();
        let Event::SosTriggered(call) = first.event else {
            panic!("a call begins otherwise");
        };
        let answered = sos::Answered {
            sos_id: call.sos_id,
            user_id: call.user_id,
            by: by.id,
            audience: call.audience,
            late: call.late,
            recorded_at: call.recorded_at,
            sealed: call.sealed,
        };
        self.tell(&stream, event(answered)).await;
    }
}

impl Socket {
    /// Subscribes to calls for help; returns the snapshot.
    async fn calls(&mut self) -> Vec<Value> {
        self.send(json!({"type": "subscribe", "id": "s", "channel": "sos"}))
            .await;
        let subscribed = self.frame().await;
        assert_eq!(subscribed["type"], "subscribed", "{subscribed}");
        let snapshot = self.frame().await;
        assert_eq!(snapshot["type"], "snapshot", "{snapshot}");
        snapshot["data"].as_array().unwrap().clone()
    }
}

/// The calls' ids, and whether somebody has seen them.
fn seen(calls: &[Value]) -> Vec<(&str, bool)> {
    let seen = calls.iter().map(|call| {
        let id = call["sos_id"].as_str().unwrap();
        (id, call["acknowledged"].as_bool().unwrap())
    });
    seen.collect()
}

#[tokio::test]
async fn who_subscribes_later_sees_the_open_calls() {
    let world = World::new().await;
    let access = world.access().await;
    let anna = world.person(&access, "Anna").await;
    let ben = world.person(&access, "Ben").await;
    let carl = world.person(&access, "Carl").await;
    world.circle(&[&anna, &ben]).await;
    world.circle(&[&anna, &carl]).await;
    let over = world.call(&anna, &[&ben]).await;
    world.answer(&over, &ben, Event::SosResolved).await;
    let early = world.call(&anna, &[&ben]).await;
    let server = Server::of(world, SocketSettings::default()).await;
    let world = &server.world;
    let mut annas = server.socket_of(&anna).await;
    assert_eq!(seen(&annas.calls().await), [(early.as_str(), false)]);

    let late = world.call(&ben, &[&anna]).await;
    assert_eq!(annas.event().await.0, "sos.triggered");
    world.answer(&early, &ben, Event::SosAcknowledged).await;
    assert_eq!(annas.event().await.0, "sos.acknowledged");
    let shown = server.socket_of(&ben).await.calls().await;
    let both = [(late.as_str(), false), (early.as_str(), true)];
    assert_eq!(seen(&shown), both);
    assert_eq!(shown[1]["name"], "Anna");
    assert_eq!(shown[1]["user_id"], anna.id.0);
    assert_eq!(shown[1]["message"], "help");
    assert_eq!(
        (&shown[1]["lat"], &shown[1]["late"]),
        (&json!(1.5), &json!(false))
    );
    assert!(shown[1].get("audience").is_none() && shown[1].get("sealed").is_none());
    // Carl shares a circle with Anna, but was not alerted.
    assert!(server.socket_of(&carl).await.calls().await.is_empty());

    world.answer(&late, &anna, Event::SosResolved).await;
    assert_eq!(annas.event().await.0, "sos.resolved");
    world.forget(&anna).await;
    assert!(server.socket_of(&ben).await.calls().await.is_empty());
}

#[tokio::test]
async fn an_organization_sees_the_open_calls_that_it_was_alerted_of() {
    let server = Server::start().await;
    let world = &server.world;
    let anna = server.person("Anna").await;
    let circle = world.org_circle(&[&anna]).await;
    let mut orgs = server.open().await;
    orgs.subscribe("before", "sos").await;
    world.call(&anna, &[]).await;
    let alerted = SosId::from(Uuid::new_v4());
    world.sos_in(&world.org, &alerted, &anna, &[]).await;
    assert_eq!(orgs.event().await.0, "sos.triggered");
    let shown = orgs.calls().await;
    assert_eq!(seen(&shown), [(alerted.as_str(), false)]);
    world.leave(&circle, &anna).await;
    assert!(server.open().await.calls().await.is_empty());
}
