//! `/ws` for persons and for organizations with circles: who sees whom, and until when.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use workflow_runner::live::SocketSettings;

use super::{Server, Socket};
use crate::people::{Circle, Person};
use crate::support::World;

impl Server {
    pub(super) async fn person(&self, name: &str) -> Person {
        self.world.person(&self.access, name).await
    }

    /// A server and two persons who share a circle: Anna and Ben.
    async fn with_circle() -> (Self, Circle, Person, Person) {
        let server = Self::start().await;
        let (anna, ben) = (server.person("Anna").await, server.person("Ben").await);
        let circle = server.world.circle(&[&anna, &ben]).await;
        (server, circle, anna, ben)
    }

    /// The person's socket, which follows positions.
    pub(super) async fn watching(&self, person: &Person) -> Socket {
        let mut socket = self.socket_of(person).await;
        socket.locations().await;
        socket
    }

    pub(super) async fn socket_of(&self, person: &Person) -> Socket {
        let mut socket = Socket::connect(self.addr).await;
        socket.auth(&person.token).await;
        assert_eq!(socket.frame().await, json!({"type": "ready"}));
        socket
    }
}

impl Socket {
    /// Subscribes to positions; returns the position and the snapshot.
    async fn locations(&mut self) -> (String, Vec<Value>) {
        self.send(json!({"type": "subscribe", "id": "l", "channel": "locations"}))
            .await;
        let subscribed = self.frame().await;
        assert_eq!(subscribed["type"], "subscribed", "{subscribed}");
        let snapshot = self.frame().await;
        assert_eq!(snapshot["type"], "snapshot", "{snapshot}");
        let position = subscribed["position"].as_str().unwrap().to_owned();
        (position, snapshot["data"].as_array().unwrap().clone())
    }

    /// The next event: its type, its person, and its data.
    pub(super) async fn event(&mut self) -> (String, u64, Value) {
        let frame = self.frame().await;
        assert_eq!(frame["type"], "event", "{frame}");
        let event = &frame["event"];
        let of = event["data"]["user_id"].as_u64().unwrap();
        (
            event["type"].as_str().unwrap().to_owned(),
            of,
            event["data"].clone(),
        )
    }
}

#[tokio::test]
async fn members_of_a_circle_see_each_other_and_nobody_else_does() {
    let (server, _, anna, ben) = Server::with_circle().await;
    let world = &server.world;
    let carl = server.person("Carl").await;
    world.fix(&anna, 1.0, "home").await;
    let mut bens = server.socket_of(&ben).await;
    let mut carls = server.socket_of(&carl).await;
    let (_, snapshot) = bens.locations().await;
    assert_eq!(snapshot.len(), 1, "{snapshot:?}");
    assert_eq!(snapshot[0]["name"], "Anna");
    assert_eq!(snapshot[0]["user_id"], anna.id.0);
    assert_eq!(snapshot[0]["lat"], 1.0);
    assert_eq!(snapshot[0]["place_name"], "home");
    assert!(snapshot[0]["speed"].is_null() && snapshot[0]["recorded_at"].is_string());
    assert!(carls.locations().await.1.is_empty());

    world.fix(&anna, 2.0, "away").await;
    let (name, of, data) = bens.event().await;
    assert_eq!((name.as_str(), of), ("location.updated", anna.id.0));
    assert_eq!(data["lat"], 2.0);
    assert_eq!(data["place_name"], "away");
    assert!(data.get("sealed").is_none() && data["battery"].is_null());
    // Everyone sees themselves; Anna's was not for Carl.
    world.fix(&carl, 3.0, "x").await;
    assert_eq!(carls.event().await.1, carl.id.0);
}

#[tokio::test]
async fn a_person_who_leaves_is_no_longer_seen_at_once() {
    let (server, circle, anna, ben) = Server::with_circle().await;
    let world = &server.world;
    let mut bens = server.watching(&ben).await;
    for _ in 0..25 {
        world.fix(&anna, 1.0, "seen").await;
        let (_, of, data) = bens.event().await;
        assert_eq!((of, &data["place_name"]), (anna.id.0, &json!("seen")));
        world.leave(&circle, &anna).await;
        world.fix(&anna, 2.0, "not seen").await;
        world.join(&circle, &anna).await;
        world.fix(&ben, 3.0, "own").await;
        assert_eq!(bens.event().await.1, ben.id.0);
    }
}

#[tokio::test]
async fn a_person_who_hides_is_no_longer_seen_at_once() {
    let (server, _, anna, ben) = Server::with_circle().await;
    let world = &server.world;
    world.fix(&anna, 1.0, "before").await;
    let mut bens = server.watching(&ben).await;
    for _ in 0..25 {
        world.pause(&anna, Utc::now() + TimeDelta::hours(1)).await;
        world.fix(&anna, 2.0, "hidden").await;
        world.fix(&ben, 3.0, "own").await;
        assert_eq!(bens.event().await.1, ben.id.0);
        world.unpause(&anna).await;
    }
    // Positions from while hiding are not shown afterwards either.
    let (_, snapshot) = server.socket_of(&ben).await.locations().await;
    let annas = snapshot.iter().find(|shown| shown["user_id"] == anna.id.0);
    assert_eq!(annas.unwrap()["place_name"], "before");
    let (_, own) = server.socket_of(&anna).await.locations().await;
    let annas = own.iter().find(|shown| shown["user_id"] == anna.id.0);
    assert_eq!(annas.unwrap()["place_name"], "hidden");
}

#[tokio::test]
async fn a_token_that_was_signed_out_shows_nothing_and_ends_the_socket() {
    let (server, _, anna, ben) = Server::with_circle().await;
    let world = &server.world;
    let mut bens = server.watching(&ben).await;
    world.sign_out(&ben).await;
    world.fix(&anna, 1.0, "not for Ben").await;
    loop {
        match bens.next().await {
            Message::Close(Some(frame)) => break assert_eq!(u16::from(frame.code), 3501),
            Message::Text(text) => assert!(!text.contains("location.updated"), "{text}"),
            _ => {}
        }
    }
    let mut again = Socket::connect(server.addr).await;
    again.auth(&ben.token).await;
    assert_eq!(again.close_code().await, 3500);
}

#[tokio::test]
async fn a_forgotten_person_is_shown_nowhere() {
    let (server, _, anna, ben) = Server::with_circle().await;
    let world = &server.world;
    let mut annas = server.socket_of(&anna).await;
    let (before, _) = annas.locations().await;
    world.fix(&anna, 1.0, "home").await;
    world.forget(&anna).await;
    assert_eq!(annas.close_code().await, 3501);
    let mut bens = server.socket_of(&ben).await;
    assert!(bens.locations().await.1.is_empty());
    bens.resume("again", "locations", &before).await;
    world.fix(&ben, 3.0, "own").await;
    for _ in 0..2 {
        assert_eq!(bens.event().await.1, ben.id.0);
    }
}

#[tokio::test]
async fn resuming_loses_and_doubles_nothing() {
    let (server, _, anna, ben) = Server::with_circle().await;
    let world = &server.world;
    let stranger = server.person("Carl").await;
    let (start, _) = server.socket_of(&ben).await.locations().await;
    let walking = async {
        for step in 0..60_u32 {
            world.fix(&anna, f64::from(step), "walk").await;
            world.fix(&stranger, 0.0, "unseen").await;
        }
    };
    let following = async {
        let (mut after, mut steps) = (start, Vec::new());
        while steps.len() < 60 {
            let mut socket = server.socket_of(&ben).await;
            socket.resume("l", "locations", &after).await;
            for _ in 0..7.min(60 - steps.len()) {
                let frame = socket.frame().await;
                assert_eq!(frame["type"], "event", "{frame}");
                frame["position"].as_str().unwrap().clone_into(&mut after);
                steps.push(frame["event"]["data"]["lat"].as_f64().unwrap());
            }
        }
        steps
    };
    let ((), steps) = tokio::join!(walking, following);
    let expected: Vec<f64> = (0..60_u32).map(f64::from).collect();
    assert_eq!(steps, expected);
}

#[tokio::test]
async fn a_late_fix_is_sent_but_does_not_replace_a_newer_latest_position() {
    let server = Server::start().await;
    let world = &server.world;
    let anna = server.person("Anna").await;
    let mut annas = server.watching(&anna).await;
    let now = Utc::now();
    world.fix_at(&anna, now, 2.0, "now").await;
    world
        .fix_at(&anna, now - TimeDelta::hours(1), 1.0, "late")
        .await;
    assert_eq!(annas.event().await.2["place_name"], "now");
    assert_eq!(annas.event().await.2["place_name"], "late");
    let (_, snapshot) = server.socket_of(&anna).await.locations().await;
    assert_eq!(snapshot[0]["place_name"], "now");
}

#[tokio::test]
async fn what_was_there_before_the_start_is_in_the_snapshot() {
    let world = crate::support::World::new().await;
    let access = world.access().await;
    let (anna, ben) = (
        world.person(&access, "Anna").await,
        world.person(&access, "Ben").await,
    );
    world.circle(&[&anna, &ben]).await;
    let position = world.fix(&anna, 1.0, "home").await;
    let server = Server::of(world, super::SocketSettings::default()).await;
    let mut bens = server.socket_of(&ben).await;
    let (at, snapshot) = bens.locations().await;
    assert_eq!(at, position.to_string());
    assert_eq!(snapshot[0]["name"], anna.name);
}

#[tokio::test]
async fn a_slow_reader_gets_the_newest_of_each_person() {
    let (server, _, anna, ben) = Server::with_circle().await;
    let world = &server.world;
    let mut bens = server.watching(&ben).await;
    bens.send(json!({"type": "subscribe", "id": "s", "channel": "sos"}))
        .await;
    assert_eq!(bens.frame().await["type"], "subscribed");
    assert_eq!(bens.frame().await["type"], "snapshot");
    let last = world.walk(&anna, 3_000, 8 * 1024).await;
    world.sos(&anna, &[&ben]).await;
    let (mut conflated, mut helped, mut seen) = (0, false, Vec::new());
    while !helped || seen.last() != Some(&last.to_string()) {
        let frame = bens.frame().await;
        match frame["type"].as_str().unwrap() {
            "conflated" => {
                assert_eq!(frame["id"], "l");
                assert!(frame["from"].is_string() && frame["to"].is_string());
                conflated += 1;
            }
            "event" if frame["id"] == "s" => helped = true,
            "event" => seen.push(frame["position"].as_str().unwrap().to_owned()),
            other => panic!("{other}: {frame}"),
        }
    }
    assert!(conflated > 0);
    assert!(seen.len() < 3_000, "{}", seen.len());
}

#[tokio::test]
async fn a_call_for_help_reaches_all_who_were_alerted() {
    let server = Server::start().await;
    let world = &server.world;
    let (anna, ben) = (server.person("Anna").await, server.person("Ben").await);
    let carl = server.person("Carl").await;
    let mut sockets = Vec::new();
    for person in [&anna, &ben, &carl] {
        let mut socket = server.socket_of(person).await;
        socket.subscribe("s", "sos").await;
        sockets.push(socket);
    }
    world.sos(&anna, &[&ben]).await;
    world.sos(&carl, &[]).await;
    for socket in &mut sockets[..2] {
        let (name, of, data) = socket.event().await;
        assert_eq!((name.as_str(), of), ("sos.triggered", anna.id.0));
        assert_eq!(data["message"], "help");
        assert_eq!(data["lat"], 1.5);
        assert_eq!(data["late"], false);
        assert!(data.get("audience").is_none());
    }
    assert_eq!(sockets[2].event().await.1, carl.id.0);
}

#[tokio::test]
async fn crossings_are_for_the_circle_that_watches() {
    let (server, circle, anna, ben) = Server::with_circle().await;
    let world = &server.world;
    let mut bens = server.socket_of(&ben).await;
    let start = bens.subscribe("p", "places").await;
    world.cross(&circle, &anna).await;
    let (name, of, data) = bens.event().await;
    assert_eq!((name.as_str(), of), ("place.entered", anna.id.0));
    assert_eq!(data["name"], "School");
    assert_eq!(data["circle_id"], circle.id.as_str());
    bens.resume("again", "places", &start).await;
    assert_eq!(bens.event().await.1, anna.id.0);
    world.leave(&circle, &anna).await;
    bens.resume("later", "places", &start).await;
    world.cross(&circle, &ben).await;
    for _ in 0..3 {
        assert_eq!(bens.event().await.1, ben.id.0);
    }
}

#[tokio::test]
async fn an_organization_sees_the_members_of_its_circles() {
    let server = Server::start().await;
    let world = &server.world;
    let (anna, ben) = (server.person("Anna").await, server.person("Ben").await);
    let circle = world.org_circle(&[&anna]).await;
    let mut orgs = server.open().await;
    orgs.locations().await;
    world.fix(&ben, 1.0, "no member").await;
    world.fix(&anna, 2.0, "member").await;
    assert_eq!(orgs.event().await.1, anna.id.0);
    orgs.subscribe("p", "places").await;
    world.cross(&circle, &anna).await;
    assert_eq!(orgs.event().await.2["name"], "School");
    orgs.subscribe("e", "events").await;
    world.cross(&world.org_circle(&[]).await, &anna).await;
    assert_eq!(orgs.event().await.2["name"], "School");
    world.leave(&circle, &anna).await;
    world.fix(&anna, 3.0, "left").await;
    world.join(&circle, &anna).await;
    world.fix(&anna, 4.0, "back").await;
    loop {
        let frame = orgs.frame().await;
        if frame["id"] == "l" {
            break assert_eq!(frame["event"]["data"]["place_name"], "back");
        }
    }
}

/// Visibility is decided with the log, which is never as fresh as one would like.
#[tokio::test]
async fn positions_come_however_far_away_the_log_is() {
    let world = World::far_away(Duration::from_millis(20)).await;
    let server = Server::of(world, SocketSettings::default()).await;
    let anna = server.person("Anna").await;
    let mut annas = server.watching(&anna).await;
    for place in ["home", "away"] {
        server.world.fix(&anna, 1.0, place).await;
        assert_eq!(annas.event().await.2["place_name"], place);
    }
}

#[tokio::test]
async fn a_person_has_no_organizations_channels() {
    let server = Server::start().await;
    let anna = server.person("Anna").await;
    let mut annas = server.socket_of(&anna).await;
    for channel in ["runs", "events"] {
        annas
            .send(json!({"type": "subscribe", "id": "s", "channel": channel}))
            .await;
        let error = annas.frame().await;
        assert_eq!(error["type"], "error");
        assert!(
            error["error"].as_str().unwrap().contains("API key"),
            "{error}"
        );
    }
    // Another token of the same person renews; another person's does not.
    annas.auth(&anna.token).await;
    assert_eq!(annas.frame().await["type"], "ready");
    let ben = server.person("Ben").await;
    annas.auth(&ben.token).await;
    assert_eq!(annas.frame().await["type"], "error");
    let events = server.world.log.position(schemas::Log::Events, 1);
    annas
        .send(json!({"type": "subscribe", "id": "s", "channel": "locations", "after": events.to_string()}))
        .await;
    let error = annas.frame().await;
    assert!(
        error["error"].as_str().unwrap().contains("another feed"),
        "{error}"
    );
}
