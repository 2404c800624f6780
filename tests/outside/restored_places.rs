//! Crossings of places after a restored backup, and which ones it does not report.

use chrono::{TimeDelta, Utc};
use harness::{Client, Organization, System};
use serde_json::{Value, json};

use super::live_locations::Person;
use crate::SHAPE;

/// Who entered and who left places, waiting until `count` crossings were reported.
async fn crossings(client: &Client, count: usize) -> Vec<(String, u64)> {
    harness::eventually("crossings", async || {
        let read = client.get("/api/v1/events?types=place.*").await;
        assert_eq!(read.status, 200, "{}", read.text());
        let crossing = |line: &str| {
            let event: Value = serde_json::from_str(line).unwrap();
            let kind = event["type"].as_str().unwrap().to_owned();
            (kind, event["data"]["user_id"].as_u64().unwrap())
        };
        let all: Vec<_> = read.text().lines().map(crossing).collect();
        (all.len() >= count).then_some(all)
    })
    .await
}

async fn member(org: &Organization<'_>, circle: &str, name: &str) -> Person {
    let person = Person::register(org.system, name).await;
    person.join(&org.invite(circle).await).await;
    person
}

#[tokio::test]
async fn crossings_not_reported_while_hidden_are_not_reported_after_a_restore() {
    let mut system = System::start(SHAPE, &[]).await;
    let org = system.organization().await;
    let circle = org.circle("Drivers").await;
    let anna = member(&org, &circle, "Anna").await;
    let ben = member(&org, &circle, "Ben").await;
    anna.place(&circle, 10.0).await;

    // She was there before she hid, and sends that while she hides.
    let before = Utc::now();
    let until = json!({"until": before + TimeDelta::hours(1)});
    anna.client.post("/location/pause", &until).await.ok(204);
    let there = json!({"lat": 10.0, "lng": 13.4, "recorded_at": before});
    anna.sends(&there).await;
    ben.is_at(10.0, "school").await;
    crossings(&org.admin, 1).await;
    ben.is_at(20.0, "elsewhere").await;
    crossings(&org.admin, 2).await;
    anna.client.post_nothing("/location/resume").await.ok(204);

    let admin = org.admin.clone();
    // A process that shuts down saves its checkpoints.
    for program in system.programs() {
        program.stop();
    }
    let backup = system.home().join("backup");
    system.waypost(&["backup", backup.to_str().unwrap()]).await;
    let (restored, _) = system.restored(&backup).await;
    let (ben_there, org_there) = (
        ben.client.at(&restored.client()),
        admin.at(&restored.client()),
    );
    for (lat, told) in [(10.0, 3), (20.0, 4)] {
        let position = json!({"lat": lat, "lng": 13.4});
        ben_there.post("/location/update", &position).await.ok(202);
        crossings(&org_there, told).await;
    }
    let told = crossings(&org_there, 4).await;
    let bens = ["place.entered", "place.left"].map(|kind| (kind.to_owned(), ben.id));
    assert_eq!(told, [bens.clone(), bens].concat());
}
