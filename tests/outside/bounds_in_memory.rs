//! What clients can make grow in memory: it stays within its bound, nobody misses anything because
//! of that, and what is no longer needed is released.

use std::collections::BTreeMap;

use chrono::{TimeDelta, Utc};
use futures::future::join_all;
use harness::{Person, Socket, System, eventually};
use serde_json::{Value, json};

use super::active;
use super::connections::told;
use super::live_locations::{self, snapshot};
use crate::SHAPE;

/// Subscribes to positions, and reads until persons are seen where they are.
async fn sees(system: &System, key: &str, wanted: &BTreeMap<u64, f64>) {
    let mut socket = Socket::open(system, key).await;
    let shown = snapshot(&mut socket).await;
    let of = |data: &Value| (data["user_id"].as_u64().unwrap(), data["lat"].as_f64());
    let mut seen: BTreeMap<_, _> = shown.iter().map(of).collect();
    assert_eq!(seen.len(), wanted.len(), "each is shown: {shown:?}");
    let wanted: BTreeMap<_, _> = wanted.iter().map(|(id, lat)| (*id, Some(*lat))).collect();
    // What was sent just before may follow the snapshot.
    while seen != wanted {
        let frame = socket.next_of("event").await;
        if frame["event"]["type"] == "location.updated" {
            let (id, lat) = of(&frame["event"]["data"]);
            seen.insert(id, lat);
        }
    }
}

#[tokio::test]
async fn few_newest_positions_are_held_and_every_subscriber_sees_all() {
    const ROOM: f64 = 2_000.0;
    let room = ROOM.to_string();
    let system = System::start(SHAPE, &[("WAYPOST_WS_LATEST_BYTES", &room)]).await;
    let org = system.organization().await;
    let code = org.invite(&org.circle("Drivers").await).await;
    let names = ["Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal"];
    let names = names.iter().chain(&names);
    let persons: Vec<Person> = join_all(names.map(|name| system.person(name))).await;
    for person in &persons {
        person.joins_by(&code).await;
    }
    for round in 0..3_u8 {
        let mut wanted = BTreeMap::new();
        for (nth, person) in (1_u8..).zip(&persons) {
            let lat = f64::from(round * 20 + nth);
            person.is_at(lat, 13.4).await;
            wanted.insert(person.id, lat);
        }
        // Several viewers at once, then one alone.
        let by_token = persons[..4].iter().map(|person| person.token.as_str());
        let keys = by_token.chain([org.key.as_str()]);
        join_all(keys.map(|key| sees(&system, key, &wanted))).await;
        sees(&system, &org.key, &wanted).await;
        let held = told(&system, "waypost_ws_latest_bytes").await;
        assert!(held > 0.0 && held <= ROOM, "{held}");
    }
    let dropped = told(&system, "waypost_ws_latest_dropped_total").await;
    assert!(dropped >= 16.0, "{dropped}");
}

/// Approximate minimum memory of a waiting position.
const POSITION: f64 = 500.0;

#[tokio::test]
async fn of_positions_that_were_compared_with_places_none_is_held() {
    let system = System::start(SHAPE, &[]).await;
    let org = system.organization().await;
    let circle = org.circle("Drivers").await;
    let code = org.invite(&circle).await;
    let mut persons = Vec::new();
    for name in ["Anna", "Ben"] {
        let person = live_locations::Person::without_limits(&system, name).await;
        person.join(&code).await;
        persons.push(person);
    }
    persons[0].place(&circle, 52.5).await;
    let held = async || told(&system, "waypost_places_held_bytes").await;
    let begin = Utc::now();
    let fix = |nth: i64, lat: f64| {
        let at = (begin + TimeDelta::milliseconds(nth)).to_rfc3339();
        json!({"lat": lat, "lng": 13.4, "place_name": "on the way", "recorded_at": at})
    };
    persons[0].sends(&fix(0, 40.0)).await;
    // Only that she is known remains.
    let one_known = eventually("her first position to be let go of", async || {
        let held = held().await;
        (held > 0.0 && held < POSITION).then_some(held)
    })
    .await;
    for person in &persons {
        for some in 0..10 {
            let on_the_way = (1..=100).map(|nth| fix(some * 100 + nth, 45.0));
            person.sends(&on_the_way.collect()).await;
        }
        person.sends(&fix(2_000, 52.5)).await;
    }
    // More than one is known once the other's positions were processed, which were sent last.
    eventually("two thousand positions to be let go of", async || {
        let held = held().await;
        (held > one_known && held < POSITION).then_some(())
    })
    .await;
    let crossings = org.admin.get("/api/v1/events?types=place.*").await.text();
    assert_eq!(
        crossings.matches("\"place.entered\"").count(),
        2,
        "{crossings}"
    );
}

/// A workflow for leads with one score, whose filter and templates are long.
fn long(score: usize) -> Value {
    let names: Vec<_> = (0..100)
        .map(|nth| format!("'nobody {score} {nth}'"))
        .collect();
    let filter = format!(
        "data.score == {score} and data.name not in [{}]",
        names.join(",")
    );
    let template = |nth| {
        let sum = format!("{{{{ trigger.score * 1000 + {nth} + (trigger.score - {score}) }}}}");
        (format!("f{nth}"), Value::from(sum))
    };
    let data: Value = (0..20).map(template).collect();
    active(&json!([
        {"id": "start", "type": "TRIGGER", "next": ["tell"],
         "on": {"event": "lead.created", "filter": filter}},
        {"id": "tell", "type": "NOTIFY", "event": "told", "data": data},
    ]))
}

#[tokio::test]
async fn few_compiled_templates_are_held_and_all_workflows_run() {
    const WORKFLOWS: usize = 24;
    /// Half of a MiB is for definitions, half for filters.
    const HALF: f64 = 512.0 * 1024.0;
    let system = System::start(SHAPE, &[("WAYPOST_TEMPLATE_CACHE_MIB", "1")]).await;
    let org = system.organization().await;
    let mut workflows = Vec::new();
    for score in 0..WORKFLOWS {
        workflows.push(org.workflow(&long(score)).await);
    }
    // Whatever was dropped meanwhile is compiled again the second time.
    for round in 1..=2 {
        for score in 0..WORKFLOWS {
            let lead = json!({"name": "Ada", "score": score});
            org.admin.post("/api/v1/records/leads", &lead).await.ok(201);
        }
        for (score, workflow) in workflows.iter().enumerate() {
            let path = format!("/api/v1/workflows/{workflow}/runs");
            let list = org.until(&path, |list| list["total"] == round).await;
            let run = list["data"][0]["runId"].as_str().unwrap();
            let run = org.ended(run).await;
            assert_eq!(run["state"], "SUCCEEDED", "{run}");
            let given = &run["steps"][1]["input"]["f19"];
            assert_eq!(*given, score * 1000 + 19, "{run}");
            for kind in ["definitions", "filters"] {
                let metric = format!("waypost_templates_bytes{{kind=\"{kind}\"}}");
                let held = told(&system, &metric).await;
                assert!(held > 0.0 && held <= HALF, "{kind}: {held}");
            }
        }
    }
}

const WEBHOOKS: &str = "/api/v1/webhooks";

/// The given number of custom event types to subscribe to.
fn wishes(name: &str, count: usize) -> Value {
    let long = "x".repeat(100);
    let wish = |nth| format!("custom.{long}.{name}-{nth}");
    (0..count).map(wish).collect()
}

#[tokio::test]
async fn the_filters_that_webhooks_had_are_bounded_and_dropped_with_them() {
    /// One endpoint's wishes over time, in each of the two feeds that are delivered from.
    const ONE: f64 = 2.0 * 16.0 * 1024.0;
    /// The size of ten wishes, likewise.
    const TEN: f64 = 2.0 * 2_000.0;
    let system = System::start(SHAPE, &[]).await;
    let org = system.organization().await;
    let until_held = async |what: &str, from: f64, to: f64| {
        eventually(what, async || {
            let held = told(&system, "waypost_webhook_wishes_bytes").await;
            (held >= from && held <= to).then_some(())
        })
        .await;
    };
    let create = async |events: Value| {
        let terms = json!({"url": "https://example.com/hook", "events": events});
        let made = org.admin.post(WEBHOOKS, &terms).await.ok(201);
        format!("{WEBHOOKS}/{}", made["id"].as_str().unwrap())
    };
    let same = json!({"events": wishes("same", 10)});
    let steady = create(same["events"].clone()).await;
    let changing = create(wishes("at-first", 20)).await;
    for nth in 0..60 {
        org.admin.patch(&steady, &same).await.ok(200);
        let others = json!({"events": wishes(&format!("then-{nth}"), 20)});
        org.admin.patch(&changing, &others).await.ok(200);
    }
    let mut others = Vec::new();
    for nth in 0..6 {
        others.push(create(wishes(&format!("other-{nth}"), 100)).await);
    }
    // The others hold more than those two may, and came after all that these ever wanted.
    until_held("what all of them want", 3.0 * ONE, f64::MAX).await;
    for path in &others {
        org.admin.delete(path).await.ok(204);
    }
    until_held("what two of them want", 1.0, ONE + TEN).await;
    org.admin.delete(&changing).await.ok(204);
    until_held("what one of them wants again and again", 1.0, TEN).await;
    org.admin.delete(&steady).await.ok(204);
    until_held("nothing to be held", 0.0, 0.0).await;
}
