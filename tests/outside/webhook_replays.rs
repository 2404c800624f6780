//! `POST /api/v1/webhooks/{id}/replay`: what is sent again, under which id, and what survives.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use harness::{Organization, Received, Receiver, System, eventually_within};
use serde_json::{Value, json};

use super::deliveries::{delivery, path, run, webhook};
use super::ndjson;
use crate::{SHAPE, system};

/// Requests a replay and returns how many deliveries are sent again.
async fn replay(org: &Organization<'_>, hook: &Value, what: &Value) -> u64 {
    let asked = org
        .admin
        .post(&format!("{}/replay", path(hook)), what)
        .await;
    assert!(!asked.position().is_empty());
    asked.ok(202)["replayed"].as_u64().unwrap()
}

fn attempts(delivery: &Value) -> usize {
    delivery["attempts"].as_array().unwrap().len()
}

fn id(received: &Received) -> &str {
    received.header("webhook-id")
}

/// Writes contacts, and returns the position of the last.
async fn contacts(org: &Organization<'_>, names: impl Iterator<Item = String>) -> String {
    let lines = names.map(|name| json!({"id": name, "email": "a@b.c"}));
    let answer = org
        .admin
        .post_bytes(
            "/api/v1/records/contacts",
            "application/x-ndjson",
            ndjson(lines),
        )
        .await;
    assert_eq!(answer.status, StatusCode::OK);
    let marker = json!({"name": "Marker"});
    org.admin
        .post("/api/v1/records/companies", &marker)
        .await
        .position()
}

#[tokio::test]
async fn a_failed_delivery_is_pending_again_and_then_ends_under_the_same_id() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    receiver.status(500);
    let hook = webhook(&org, &receiver.url("/"), &["run.succeeded"]).await;
    run(&org).await;
    let failed = delivery(&org, &hook, "FAILED").await;
    assert_eq!(attempts(&failed), 4);

    // Another round has the same number of attempts.
    let by_id = json!({"deliveryId": failed["id"]});
    assert_eq!(replay(&org, &hook, &by_id).await, 1);
    receiver.wait_for(8, |_| true).await;
    let list = format!("{}/deliveries", path(&hook));
    // A read may show the state before the replay.
    let failed_again = |list: &Value| {
        let last = &list["data"][0];
        last["status"] == "FAILED" && attempts(last) > 4
    };
    let failed = org.until(&list, failed_again).await["data"][0].clone();
    assert_eq!(attempts(&failed), 8);

    receiver.status(200);
    receiver.delay(Duration::from_secs(1));
    assert_eq!(replay(&org, &hook, &by_id).await, 1);
    let pending = delivery(&org, &hook, "PENDING").await;
    assert_eq!(attempts(&pending), 8);
    assert!(pending["nextAttemptAt"].is_string());
    let sent = delivery(&org, &hook, "SUCCEEDED").await;
    assert_eq!(attempts(&sent), 9);
    assert_eq!(sent["attempts"][8]["status"], 200);
    let received = receiver.received();
    assert_eq!(received.len(), 9);
    for again in &received {
        assert_eq!(id(again), failed["id"].as_str().unwrap());
        assert_eq!(again.body, received[0].body);
    }
    // Successful deliveries may be sent again as well.
    receiver.delay(Duration::ZERO);
    assert_eq!(replay(&org, &hook, &by_id).await, 1);
    receiver.wait_for(10, |_| true).await;
}

#[tokio::test]
async fn all_that_failed_is_sent_again_and_nothing_else() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    let answer = |status: StatusCode| (status, HeaderMap::new(), String::new());
    receiver.reply(move |received| {
        let bad = received.json()["data"]["id"]
            .as_str()
            .unwrap()
            .starts_with("bad");
        answer(if bad {
            StatusCode::BAD_GATEWAY
        } else {
            StatusCode::OK
        })
    });
    let hook = webhook(&org, &receiver.url("/"), &["contact.created"]).await;
    let other = webhook(&org, &receiver.url("/other"), &["contact.created"]).await;
    let names = ["bad1", "good1", "bad2", "good2", "bad3"];
    contacts(&org, names.into_iter().map(str::to_owned)).await;
    for hook in [&hook, &other] {
        let all_ended = |list: &Value| {
            let mut statuses = list["data"].as_array().unwrap().iter();
            list["total"] == 5 && statuses.all(|one| one["status"] != "PENDING")
        };
        let list = format!("{}/deliveries", path(hook));
        org.until(&list, all_ended).await;
    }
    let before = receiver.received().len();
    receiver.status(200);
    assert_eq!(replay(&org, &hook, &json!({"failed": true})).await, 3);
    let list = format!("{}/deliveries", path(&hook));
    let succeeded = |list: &Value| {
        let mut statuses = list["data"].as_array().unwrap().iter();
        statuses.all(|one| one["status"] == "SUCCEEDED")
    };
    let list = org.until(&list, succeeded).await;
    let mut tried: Vec<usize> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(attempts)
        .collect();
    tried.sort_unstable();
    assert_eq!(tried, [1, 1, 5, 5, 5]);
    let again = receiver.received().split_off(before);
    assert!(
        again.iter().all(|received| received.path == "/"),
        "{again:?}"
    );
    assert_eq!(again.len(), 3);
    assert_eq!(replay(&org, &hook, &json!({"failed": true})).await, 0);
}

#[tokio::test]
async fn everything_wanted_behind_a_position_is_sent_whether_it_was_before_or_not() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    let early = contacts(&org, (0..3).map(|n| format!("early{n}"))).await;
    contacts(&org, (0..5).map(|n| format!("late{n}"))).await;
    let hook = webhook(&org, &receiver.url("/"), &["contact.created"]).await;
    contacts(&org, (0..2).map(|n| format!("new{n}"))).await;
    let first = receiver.wait_for(2, |_| true).await;
    // A delivery is only done once that is recorded: until then it would not be sent again.
    let list = format!("{}/deliveries", path(&hook));
    let settled = |count: u64| {
        move |list: &Value| {
            let all = list["data"].as_array().unwrap();
            list["total"] == count && all.iter().all(|one| one["status"] == "SUCCEEDED")
        }
    };
    org.until(&list, settled(2)).await;
    assert_eq!(replay(&org, &hook, &json!({"after": early})).await, 7);
    let received = receiver.wait_for(9, |_| true).await;
    let mut ids: HashMap<String, HashSet<String>> = HashMap::new();
    for one in &received {
        let contact = one.json()["data"]["id"].as_str().unwrap().to_owned();
        ids.entry(contact).or_default().insert(id(one).to_owned());
    }
    assert_eq!(ids.len(), 7, "{ids:?}");
    assert!(ids.values().all(|ids| ids.len() == 1), "{ids:?}");
    assert!(
        first
            .iter()
            .all(|one| !one.json()["data"]["id"].to_string().contains("early"))
    );
    let list = org.until(&list, settled(7)).await;
    let twice = list["data"].as_array().unwrap().iter();
    assert_eq!(twice.filter(|one| attempts(one) == 2).count(), 2);

    // After the last position there is nothing; the types are those that it wants now.
    let last = received[8].json()["position"].clone();
    let all = json!({"events": ["company.created"]});
    org.admin.patch(&path(&hook), &all).await.ok(200);
    assert_eq!(replay(&org, &hook, &json!({"after": early})).await, 2);
    let companies = |r: &Received| r.json()["type"] == "company.created";
    receiver.wait_for(2, companies).await;
    let none = json!({"events": ["deal.created"]});
    org.admin.patch(&path(&hook), &none).await.ok(200);
    assert_eq!(replay(&org, &hook, &json!({"after": last})).await, 0);
}

#[tokio::test]
async fn positions_are_sent_again_to_those_who_may_see_them() {
    let system = system().await;
    let org = system.organization().await;
    let (anna, ben) = (system.person("Anna").await, system.person("Ben").await);
    let circle = json!({"name": "Drivers"});
    let circle = org.admin.post("/api/v1/circles", &circle).await.ok(201);
    let invites = format!("/api/v1/circles/{}/invites", circle["id"].as_str().unwrap());
    for member in [&anna, &ben] {
        let invite = org.admin.post_nothing(&invites).await.ok(201);
        let code = json!({"code": invite["code"]});
        member.client.post("/circles/join", &code).await.ok(200);
    }
    for person in [&anna, &ben, &anna] {
        let here = json!({"lat": 53.5, "lng": 10.0});
        person.client.post("/location/update", &here).await.ok(202);
    }
    // Reads of both feeds begin at a position without an event.
    let told = org.admin.get("/api/v1/locations").await.text();
    let told: Value = serde_json::from_str(told.lines().next().unwrap()).unwrap();
    let receiver = Receiver::start().await;
    let hook = webhook(&org, &receiver.url("/"), &["location.updated"]).await;
    let first = told["position"].as_str().unwrap();
    assert_eq!(replay(&org, &hook, &json!({"after": first})).await, 2);
    receiver.wait_for(2, |_| true).await;
    let leave = format!("/circles/{}/members/me", circle["id"].as_str().unwrap());
    ben.client.delete(&leave).await.ok(204);
    let known = async || {
        let count = replay(&org, &hook, &json!({"after": first})).await;
        (count == 1).then_some(())
    };
    eventually_within(Duration::from_secs(10), "Ben to have left", known).await;
    let of = |person: u64| {
        let received = receiver.received().into_iter();
        received
            .filter(|r| r.json()["data"]["user_id"] == person)
            .count()
    };
    receiver.wait_for(3, |_| true).await;
    assert!(of(anna.id) >= 2 && of(ben.id) >= 1);
}

/// Kills everything repeatedly while a replay is in progress: each delivery is made again, and
/// recorded exactly once.
#[tokio::test]
async fn a_replay_survives_kill_9_at_any_instant() {
    const COUNT: usize = 1_200;
    let mut system = System::start(SHAPE, &[("WAYPOST_WEBHOOK_CONCURRENCY", "4")]).await;
    let receiver = Receiver::start().await;
    let (org_id, admin, key, hook) = {
        let org = system.organization().await;
        let hook = webhook(&org, &receiver.url("/"), &["contact.created"]).await;
        let start = json!({"name": "Start"});
        let start = org.admin.post("/api/v1/records/companies", &start).await;
        contacts(&org, (0..COUNT).map(|n| format!("c{n}"))).await;
        receiver.wait_for(COUNT, |_| true).await;
        let list = format!("{}/deliveries?limit=1", path(&hook));
        org.until(&list, |list| list["total"] == COUNT).await;
        receiver.delay(Duration::from_millis(5));
        let after = json!({"after": start.position()});
        assert_eq!(replay(&org, &hook, &after).await, COUNT as u64);
        (org.id.clone(), org.admin.clone(), org.key.clone(), hook)
    };
    let before = receiver.received().len();
    for round in 1..=3 {
        receiver
            .wait_for(before + round * COUNT / 5, |_| true)
            .await;
        system.crash();
        system.revive().await;
    }
    receiver.wait_for(before + COUNT, |_| true).await;
    let org = Organization {
        system: &system,
        id: org_id,
        admin,
        key,
    };
    let all = async || {
        let mut all = Vec::new();
        for page in 1..=COUNT.div_ceil(100) {
            let list = format!("{}/deliveries?limit=100&page={page}", path(&hook));
            let list = org.admin.get(&list).await.ok(200);
            all.extend(list["data"].as_array().unwrap().clone());
        }
        let sent = |one: &Value| one["status"] == "SUCCEEDED" && attempts(one) >= 2;
        (all.len() == COUNT && all.iter().all(sent)).then_some(all)
    };
    let limit = Duration::from_secs(90);
    let all = eventually_within(limit, "every delivery to be made again", all).await;
    let once = all.iter().filter(|one| attempts(one) == 2).count();
    assert_eq!(once, COUNT, "each is queued and recorded once");
    let mut ids: HashMap<String, HashSet<String>> = HashMap::new();
    for one in receiver.received() {
        let contact = one.json()["data"]["id"].as_str().unwrap().to_owned();
        ids.entry(contact).or_default().insert(id(&one).to_owned());
    }
    assert_eq!(ids.len(), COUNT);
    assert!(ids.values().all(|ids| ids.len() == 1));
}
