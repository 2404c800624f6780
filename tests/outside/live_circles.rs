//! Circles live: organizations' own, places that are watched, and calls for help.

use std::collections::BTreeMap;

use chrono::{TimeDelta, Utc};
use harness::{Organization, Receiver, Socket};
use serde_json::json;

use super::live_locations::{Person, couple, event, snapshot};
use crate::system;

/// Adds a person to a new circle of an organization.
async fn member_of(org: &Organization<'_>, person: &Person) -> String {
    let circle = org.circle("Drivers").await;
    person.join(&org.invite(&circle).await).await;
    circle
}

#[tokio::test]
async fn an_organization_gets_what_members_of_its_circles_do() {
    let org = system().await.organization().await;
    let (anna, other) = tokio::join!(
        Person::register(org.system, "Anna"),
        Person::register(org.system, "Ben")
    );
    let receiver = Receiver::start().await;
    let webhook = json!({
        "url": receiver.url("/"),
        "events": ["location.*", "place.*", "sos.*", "circle.*"],
    });
    org.admin.post("/api/v1/webhooks", &webhook).await.ok(201);
    let circle = member_of(&org, &anna).await;
    anna.place(&circle, 10.0).await;
    let mut socket = Socket::open(org.system, &org.key).await;
    assert!(snapshot(&mut socket).await.is_empty());
    for channel in ["places", "sos"] {
        socket.subscribe(channel, channel, None).await;
    }
    other.is_at(10.0, "no member").await;
    anna.is_at(10.0, "school").await;
    let help = json!({"lat": 10, "lng": 13.4, "message": "help"});
    anna.client.post("/sos/trigger", &help).await.ok(202);
    let mut heard = BTreeMap::new();
    for _ in 0..3 {
        let (kind, of, data) = event(&mut socket).await;
        assert_eq!(of, anna.id);
        heard.insert(kind, data);
    }
    assert_eq!(heard["location.updated"]["place_name"], "school");
    assert_eq!(heard["place.entered"]["name"], "School");
    assert_eq!(heard["place.entered"]["circle_id"], circle);
    assert_eq!(heard["sos.triggered"]["message"], "help");
    let received = receiver.wait_for(4, |_| true).await;
    let mut posted = BTreeMap::new();
    for received in &received {
        let body = received.json();
        posted.insert(
            body["type"].as_str().unwrap().to_owned(),
            body["data"].clone(),
        );
    }
    assert_eq!(
        posted.remove("circle.member_joined").unwrap()["user_id"],
        anna.id
    );
    assert_eq!(posted, heard);

    anna.leave(&circle).await;
    anna.is_at(20.0, "not for them").await;
    let left = |received: &harness::Received| received.json()["type"] == "circle.member_left";
    receiver.wait_for(1, left).await;
    member_of(&org, &anna).await;
    anna.is_at(30.0, "again for them").await;
    assert_eq!(event(&mut socket).await.2["place_name"], "again for them");
    let again = |received: &harness::Received| received.json()["data"]["lat"] == 30.0;
    receiver.wait_for(1, again).await;
    let all = receiver.received();
    assert!(
        all.iter()
            .all(|received| received.json()["data"]["lat"] != 20.0)
    );
}

#[tokio::test]
async fn each_crossing_is_reported_once() {
    let system = system().await;
    let (anna, ben, circle) = couple(system).await;
    anna.place(&circle, 10.0).await;
    let mut bens = ben.socket(system).await;
    let start = bens.subscribe("p", "places", None).await;
    let metre = 1.0 / 111_195.0;
    // Outside, in, jitter at the edge, a fix too inexact to tell, out.
    for (metres, accuracy) in [(500, 5), (20, 5), (110, 5), (90, 5), (300, 250), (400, 5)] {
        let lat = 10.0 + f64::from(metres) * metre;
        anna.sends(&json!({"lat": lat, "lng": 13.4, "accuracy": accuracy}))
            .await;
    }
    let mut told = Vec::new();
    for _ in 0..2 {
        let (kind, of, data) = event(&mut bens).await;
        assert_eq!((of, &data["name"]), (anna.id, &json!("School")));
        assert!(data["place_id"].is_string() && data["recorded_at"].is_string());
        told.push(kind);
    }
    assert_eq!(told, ["place.entered", "place.left"]);
    // When reread from the log, nothing else is between these and what follows.
    ben.is_at(10.0, "school").await;
    assert_eq!(event(&mut bens).await.1, ben.id);
    bens.subscribe("again", "places", Some(&start)).await;
    for of in [anna.id, anna.id, ben.id] {
        assert_eq!(event(&mut bens).await.1, of);
    }
}

#[tokio::test]
async fn a_call_for_help_reaches_all_who_share_a_circle() {
    let system = system().await;
    let (anna, ben, _) = couple(system).await;
    let carl = Person::register(system, "Carl").await;
    let circle = carl.circle().await;
    anna.join(&carl.invite(&circle).await).await;
    let stranger = Person::register(system, "Dora").await;
    let mut sockets = Vec::new();
    for person in [&anna, &ben, &carl, &stranger] {
        let mut socket = person.socket(system).await;
        socket.subscribe("s", "sos", None).await;
        sockets.push(socket);
    }
    let long_ago = Utc::now() - TimeDelta::hours(2);
    let help = json!({"lat": 1.5, "lng": 2.5, "message": "help", "recorded_at": long_ago});
    let called = anna.client.post("/sos/trigger", &help).await.ok(202);
    let sos_id = called["sos_id"].as_str().unwrap();
    for action in ["acknowledge", "resolve"] {
        let path = format!("/sos/{sos_id}/{action}");
        ben.client.post_nothing(&path).await.ok(200);
    }
    for socket in &mut sockets[..3] {
        for expected in ["sos.triggered", "sos.acknowledged", "sos.resolved"] {
            let (kind, of, data) = event(socket).await;
            assert_eq!((kind.as_str(), of), (expected, anna.id));
            assert_eq!(data["sos_id"], sos_id);
            assert_eq!(
                (&data["message"], &data["late"]),
                (&json!("help"), &json!(true))
            );
            assert!(data.get("audience").is_none());
        }
    }
    stranger
        .client
        .post("/sos/trigger", &json!({}))
        .await
        .ok(202);
    assert_eq!(event(&mut sockets[3]).await.1, stranger.id);
}
