//! The flow of events: who sees what, starting where, without loss or duplicates.

use std::time::Duration;

use serde_json::{Value, json};
use workflow_runner::live::SocketSettings;

use super::{Server, Socket};
use crate::support::{World, contact, contact_deleted, write};

#[tokio::test]
async fn a_run_is_seen_as_it_happens() {
    let server = Server::start().await;
    let mut socket = server.open().await;
    socket.subscribe("s1", "runs").await;
    let (run, position) = server.world.run().await;
    let triggered = socket.frame().await;
    assert_eq!(triggered["type"], "event");
    assert_eq!(triggered["id"], "s1");
    assert_eq!(triggered["channel"], "runs");
    assert_eq!(triggered["event"]["type"], "workflow.triggered");
    assert_eq!(triggered["event"]["data"]["runId"], run.as_str());
    assert!(triggered["event"]["time"].is_string());
    let started = socket.frame().await;
    assert_eq!(started["position"], position.to_string());
    assert_eq!(
        started["event"]["data"],
        json!({"runId": run.as_str(), "workflowId": "w1"})
    );
}

#[tokio::test]
async fn each_channel_has_its_events_and_no_others() {
    let server = Server::start().await;
    let key = server.key().await;
    let mut runs = server.open_with(&key).await;
    let mut events = server.open_with(&key).await;
    runs.subscribe("r", "runs").await;
    events.subscribe("e", "events").await;
    server.world.neighbour().run().await;
    server.world.contacts(0..1, 0).await;
    server.world.run().await;
    for expected in ["workflow.triggered", "run.started"] {
        assert_eq!(runs.frame().await["event"]["type"], expected);
    }
    for expected in ["contact.created", "workflow.triggered", "run.started"] {
        assert_eq!(events.frame().await["event"]["type"], expected);
    }
}

#[tokio::test]
async fn hashes_and_internal_events_are_not_shown() {
    let server = Server::start().await;
    let mut socket = server.open().await;
    socket.subscribe("e", "events").await;
    let stream = schemas::StreamId::new(
        &server.world.org,
        schemas::AggregateType::Organization,
        server.world.org.as_str(),
    );
    let created = schemas::Event::OrganizationCreated(schemas::organization::Created {
        org_id: server.world.org.clone(),
        name: "Acme".to_owned(),
    });
    server.world.append(&stream, 0, created).await;
    server.world.key(&["events:read"], None).await;
    let frame = socket.frame().await;
    assert_eq!(frame["event"]["type"], "key.created");
    assert!(frame["event"]["data"]["keyId"].is_string());
    assert_eq!(frame["event"]["data"].get("keySha256"), None);
}

#[tokio::test]
async fn one_socket_has_several_subscriptions_until_it_unsubscribes() {
    let server = Server::start().await;
    let mut socket = server.open().await;
    socket.subscribe("a", "events").await;
    socket.subscribe("b", "events").await;
    server.world.contacts(0..1, 0).await;
    let ids = [socket.frame().await, socket.frame().await].map(|frame| frame["id"].clone());
    assert!(
        ids.contains(&json!("a")) && ids.contains(&json!("b")),
        "{ids:?}"
    );
    socket.send(json!({"type": "unsubscribe", "id": "a"})).await;
    // Frames are handled in order, so the response to the next one shows that this one was handled.
    socket.subscribe("c", "runs").await;
    server.world.contacts(1..2, 0).await;
    assert_eq!(socket.frame().await["id"], "b");
    server.world.contacts(2..3, 0).await;
    let frame = socket.frame().await;
    assert_eq!(frame["id"], "b");
    assert_eq!(frame["event"]["data"]["id"], "c2");
}

#[tokio::test]
async fn a_client_resumes_where_it_was_while_the_log_goes_on() {
    let server = Server::start().await;
    let mut socket = server.open().await;
    let before = socket.subscribe("s", "events").await;
    drop(socket);
    server.world.contacts(0..1_500, 0).await;
    let mut socket = server.open().await;
    let appending = async {
        for start in (1_500..3_000).step_by(50) {
            server.world.contacts(start..start + 50, 0).await;
        }
    };
    let reading = async {
        socket.resume("s", "events", &before).await;
        let mut seen = Vec::new();
        let mut last = 0;
        while seen.len() < 3_000 {
            let frame = socket.frame().await;
            let position = frame["position"].as_str().unwrap();
            let sequence: u64 = position.rsplit('-').next().unwrap().parse().unwrap();
            assert!(sequence > last, "{sequence} came after {last}");
            last = sequence;
            if frame["event"]["type"] == "contact.created" {
                seen.push(frame["event"]["data"]["id"].as_str().unwrap().to_owned());
            }
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 3_000, "each once");
    };
    tokio::join!(appending, reading);
}

#[tokio::test]
async fn a_client_that_resumes_is_not_shown_what_was_erased() {
    let server = Server::start().await;
    let key = server.key().await;
    let mut socket = server.open_with(&key).await;
    let before = socket.subscribe("s", "events").await;
    let (org, kind) = (&server.world.org, schemas::AggregateType::Contact);
    let gone = schemas::StreamId::new(org, kind, "gone");
    let created = server.world.append(&gone, 0, contact("gone", 0)).await;
    let deleted = contact_deleted("gone");
    server
        .world
        .append(&gone, created.sequence(), deleted)
        .await;
    for expected in ["contact.created", "contact.deleted"] {
        assert_eq!(socket.frame().await["event"]["type"], expected);
    }
    server.world.log.erase(&gone).await.unwrap();
    server.world.contacts(0..1, 0).await;
    // The first socket is still open, and so its organization's events are still in memory.
    assert_eq!(socket.contacts(1).await, ["c0"]);
    let mut again = server.open_with(&key).await;
    again.resume("s", "events", &before).await;
    assert_eq!(again.contacts(1).await, ["c0"]);
}

#[tokio::test]
async fn a_resumed_channel_passes_over_what_is_not_its_own() {
    let server = Server::start().await;
    let mut socket = server.open().await;
    let before = socket.subscribe("s", "runs").await;
    drop(socket);
    server.world.contacts(0..200, 0).await;
    let (run, _) = server.world.run().await;
    server.world.contacts(200..400, 0).await;
    let mut socket = server.open().await;
    socket.resume("s", "runs", &before).await;
    for _ in 0..2 {
        assert_eq!(socket.frame().await["event"]["data"]["runId"], run.as_str());
    }
    let (run, _) = server.world.run().await;
    assert_eq!(socket.frame().await["event"]["data"]["runId"], run.as_str());
}

#[tokio::test]
async fn a_position_just_answered_by_a_command_may_be_ahead_of_the_socket() {
    let server = Server::start().await;
    let mut socket = server.open().await;
    for id in 0..20 {
        let (_, position) = server.world.run().await;
        let name = format!("s{id}");
        let after = position.to_string();
        socket
            .send(json!({"type": "subscribe", "id": name, "channel": "runs", "after": after}))
            .await;
        // The server may not have handled the previous unsubscribe yet.
        let mut frame = socket.frame().await;
        while frame["type"] == "event" && frame["id"] != name.as_str() {
            frame = socket.frame().await;
        }
        let expected = json!({"type": "subscribed", "id": name, "position": after});
        assert_eq!(frame, expected);
        let (run, _) = server.world.run().await;
        assert_eq!(socket.frame().await["event"]["data"]["runId"], run.as_str());
        assert_eq!(socket.frame().await["event"]["type"], "run.started");
        socket
            .send(json!({"type": "unsubscribe", "id": name}))
            .await;
    }
}

/// More than rings, buffers and the kernel hold together.
#[tokio::test]
async fn a_reader_that_falls_far_behind_loses_nothing() {
    const COUNT: usize = 2_500;
    const BYTES: usize = 16 * 1024;
    let server = Server::start().await;
    let mut slow = server.open().await;
    slow.subscribe("s", "events").await;
    let mut quick = server.open().await;
    quick.subscribe("q", "events").await;
    // The second key is an event of its own, which the first socket sees.
    assert_eq!(slow.frame().await["event"]["type"], "key.created");
    let appending = async {
        for start in (0..COUNT).step_by(50) {
            server.world.contacts(start..start + 50, BYTES).await;
        }
    };
    let ((), at_once) = tokio::join!(appending, quick.contacts(COUNT));
    let late = slow.contacts(COUNT).await;
    assert_eq!(late, at_once);
    let mut each = late;
    each.sort();
    each.dedup();
    assert_eq!(each.len(), COUNT);
}

#[tokio::test]
async fn one_large_event_passes() {
    let server = Server::start().await;
    let mut socket = server.open().await;
    let before = socket.subscribe("s", "events").await;
    let stream = schemas::StreamId::new(&server.world.org, schemas::AggregateType::Contact, "big");
    let large = write(&stream, 0, vec![contact("big", 600 * 1024)]);
    server.world.log.commit(large.into()).await.unwrap();
    assert_eq!(socket.contacts(1).await, ["big"]);
    let mut again: Socket = server.open().await;
    again.resume("s", "events", &before).await;
    assert_eq!(again.contacts(1).await, ["big"]);
}

/// An event is sent after a query to the log of who may see it, and a subscription makes such a
/// query too.
#[tokio::test]
async fn a_client_that_asks_while_events_come_holds_nobody_up() {
    let world = World::far_away(Duration::from_millis(20)).await;
    let server = Server::of(world, SocketSettings::default()).await;
    let (anna, ben) = (server.person("Anna").await, server.person("Ben").await);
    let (mut annas, mut bens) = (server.watching(&anna).await, server.watching(&ben).await);
    server.world.fix(&anna, 1.0, "home").await;
    for id in 0..8 {
        annas
            .send(json!({"type": "subscribe", "id": id.to_string(), "channel": "sos"}))
            .await;
    }
    let mut types: Vec<Value> = Vec::new();
    for _ in 0..17 {
        types.push(annas.frame().await["type"].clone());
    }
    for (name, count) in [("subscribed", 8), ("snapshot", 8), ("event", 1)] {
        let found = types.iter().filter(|of| **of == name).count();
        assert_eq!(found, count, "{name}: {types:?}");
    }
    server.world.fix(&ben, 2.0, "away").await;
    assert_eq!(bens.frame().await["type"], "event");
}
