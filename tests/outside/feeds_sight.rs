//! What the feed of events shows of persons: as much as sockets and webhooks, for as long.

use harness::{Organization, Person, Receiver, SlowReader, Socket, eventually};
use serde_json::{Value, json};

use crate::system;

const OF_PERSONS: &str = "/api/v1/events?types=place.*,sos.*";

async fn joins(org: &Organization<'_>, person: &Person, circle: &str) {
    person.joins_by(&org.invite(circle).await).await;
}

/// The types that the feed shows as lines.
async fn told(org: &Organization<'_>) -> Vec<String> {
    let lines = eventually("a place among the readers", async || {
        let answer = org.admin.get(OF_PERSONS).await;
        (answer.status == 200).then(|| answer.text())
    });
    lines.await.lines().map(type_of).collect()
}

fn type_of(event: &str) -> String {
    let event: Value = serde_json::from_str(event).expect("JSON");
    event["type"].as_str().expect("a type").to_owned()
}

/// Asserts that both forms of the feed show these types of persons and nothing else.
async fn tells(org: &Organization<'_>, wanted: &[&str]) {
    assert_eq!(told(org).await, wanted);
    let marker = json!({"email": "marker@example.com"});
    let path = "/api/v1/records/contacts/marker";
    org.admin.put(path, &marker).await;
    org.admin.delete(path).await.ok(204);
    let first = org.admin.get("/api/v1/events?limit=1").await.json();
    let first = first["position"].as_str().unwrap();
    let marks = org.admin.get("/api/v1/events?types=contact.deleted").await;
    let count = wanted.len() + marks.text().lines().count();
    let path = format!("{OF_PERSONS},contact.deleted&after={first}&limit={count}");
    let live = SlowReader::get_as(org.system, &org.key, &path, "text/event-stream").await;
    let live = String::from_utf8(live.rest().await.expect("an end")).unwrap();
    let live = live.lines().filter_map(|line| line.strip_prefix("data: "));
    let live: Vec<_> = live
        .map(type_of)
        .filter(|kind| kind != "contact.deleted")
        .collect();
    assert_eq!(live, wanted);
}

/// Asserts that a socket's channel of all events shows nothing else either.
async fn socket_tells(org: &Organization<'_>, wanted: &[&str]) {
    let marker = json!({"name": "marker"});
    let marker = org.admin.post("/api/v1/records/companies", &marker).await;
    let marker = marker.ok(201)["id"].clone();
    let first = org.admin.get("/api/v1/events?limit=1").await.json();
    let mut socket = Socket::open(org.system, &org.key).await;
    socket
        .subscribe("e", "events", first["position"].as_str())
        .await;
    let mut told = Vec::new();
    loop {
        let frame = socket.next().await;
        let (event, kind) = (&frame["event"], frame["event"]["type"].as_str());
        if event["data"]["id"] == marker {
            break;
        }
        let of_persons = |kind: &&str| kind.starts_with("place.") || kind.starts_with("sos.");
        told.extend(kind.filter(of_persons).map(str::to_owned));
    }
    assert_eq!(told, wanted);
}

async fn until_told(org: &Organization<'_>, wanted: &[&str]) {
    eventually("what the feed tells", async || {
        (told(org).await == wanted).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_feed_shows_nothing_of_persons_who_hide_or_left() {
    let system = system().await;
    let org = system.organization().await;
    let anna = system.person("Anna").await;
    let circle = org.circle("Drivers").await;
    joins(&org, &anna, &circle).await;
    let place = json!({"name": "School", "lat": 10, "lng": 20, "radius_m": 100});
    let path = format!("/circles/{circle}/places");
    anna.client.post(&path, &place).await.ok(201);
    anna.is_at(10.0, 20.0).await;
    let help = json!({"lat": 10, "lng": 20, "message": "help"});
    until_told(&org, &["place.entered"]).await;
    anna.client.post("/sos/trigger", &help).await.ok(202);
    let all = ["place.entered", "sos.triggered"];
    until_told(&org, &all).await;

    // While she hides, her crossings are not shown; a call for help is meant to be heard.
    let until = chrono::Utc::now() + chrono::TimeDelta::hours(1);
    let pause = json!({"until": until});
    anna.client.post("/location/pause", &pause).await.ok(204);
    tells(&org, &["sos.triggered"]).await;
    socket_tells(&org, &["sos.triggered"]).await;
    anna.client.post_nothing("/location/resume").await.ok(204);
    tells(&org, &all).await;

    let me = format!("/circles/{circle}/members/me");
    anna.client.delete(&me).await.ok(204);
    tells(&org, &[]).await;
    socket_tells(&org, &[]).await;
    // Webhooks created later do not replay any of it either.
    let receiver = Receiver::start().await;
    let webhook =
        json!({"url": receiver.url("/"), "events": ["place.*", "sos.*", "contact.deleted"]});
    let webhook = org.admin.post("/api/v1/webhooks", &webhook).await.ok(201);
    let first = org.admin.get("/api/v1/events?limit=1").await.json();
    let path = format!(
        "/api/v1/webhooks/{}/replay",
        webhook["id"].as_str().unwrap()
    );
    let after = json!({"after": first["position"]});
    org.admin.post(&path, &after).await.ok(202);
    let marks = |received: &harness::Received| received.json()["type"] == "contact.deleted";
    receiver.wait_for(3, marks).await;
    assert!(receiver.received().iter().all(marks));

    // By rejoining she has agreed again.
    joins(&org, &anna, &circle).await;
    tells(&org, &all).await;
}
