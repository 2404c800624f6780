//! Calls for help: who is alerted, who may answer, and that nothing limits them.

use chrono::{TimeDelta, Utc};
use harness::{Organization, Person, eventually};
use serde_json::{Value, json};

use crate::system;

async fn two_in_a_circle() -> (Person, Person) {
    let system = system().await;
    let (ada, bob) = (system.person("Ada").await, system.person("Bob").await);
    let circle = ada.makes_circle().await;
    bob.joins(&circle, &ada).await;
    (ada, bob)
}

#[tokio::test]
async fn the_circle_is_alerted_and_answers() {
    let (ada, bob) = two_in_a_circle().await;
    let eve = system().await.person("Eve").await;
    let body = json!({"lat": 1.5, "lng": 2.5, "message": "Hilfe!"});
    let called = ada.client.post("/sos/trigger", &body).await.ok(202);
    assert_eq!(called["audience"], json!([{"id": bob.id, "name": "Bob"}]));
    assert_eq!(called.as_object().unwrap().len(), 2);
    let id = called["sos_id"].as_str().unwrap();
    let (seen, over) = (
        format!("/sos/{id}/acknowledge"),
        format!("/sos/{id}/resolve"),
    );
    for path in [&seen, &over, "/sos/none/acknowledge", "/sos/none/resolve"] {
        eve.client.post_nothing(path).await.error(404);
    }
    for _ in 0..2 {
        bob.client.post_nothing(&seen).await.ok(200);
    }
    ada.client.post_nothing(&over).await.ok(200);
    bob.client.post_nothing(&over).await.ok(200);
}

#[tokio::test]
async fn nothing_need_be_said_in_a_call_and_nobody_need_be_there() {
    let ada = system().await.person("Ada").await;
    let called = ada.client.post_nothing("/sos/trigger").await.ok(202);
    assert_eq!(called["audience"], json!([]));
    ada.client.post("/sos/trigger", &json!({})).await.ok(202);
    for (body, field) in [
        (json!({"lat": 91, "lng": 1}), "lat"),
        (json!({"lat": 1}), "lng"),
        (json!({"message": 5}), "message"),
        (json!({"recorded_at": "now"}), "recorded_at"),
        (json!([]), "body"),
    ] {
        let message = ada.client.post("/sos/trigger", &body).await.error(400);
        assert!(message.starts_with(field), "{message}");
    }
}

#[tokio::test]
async fn calls_are_without_limit_and_count_as_nothing() {
    let (ada, bob) = two_in_a_circle().await;
    for _ in 0..110 {
        let called = ada.client.post("/sos/trigger", &json!({})).await;
        assert_eq!(called.header("ratelimit"), None);
        called.ok(202);
    }
    ada.client.get("/circles").await.ok(200);
    bob.client.get("/circles").await.ok(200);
}

#[tokio::test]
async fn a_repeat_with_the_same_idempotency_key_is_the_same_call() {
    let (ada, _) = two_in_a_circle().await;
    let body = json!({"message": "once"});
    let first = ada
        .client
        .post_once("/sos/trigger", "k", &body)
        .await
        .ok(202);
    assert_eq!(
        ada.client
            .post_once("/sos/trigger", "k", &body)
            .await
            .ok(202),
        first
    );
    let other = json!({"message": "twice"});
    ada.client
        .post_once("/sos/trigger", "k", &other)
        .await
        .error(409);
}

/// The organization's own events about a call.
async fn told(org: &Organization<'_>, sos_id: &str, count: usize) -> Vec<Value> {
    eventually("the organization's feed", async || {
        let feed = org.admin.get("/api/v1/events?types=sos.*").await;
        let lines = feed.text();
        let events = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let events: Vec<_> = events
            .filter(|event| event["data"]["sos_id"] == sos_id)
            .collect();
        (events.len() >= count).then_some(events)
    })
    .await
}

#[tokio::test]
async fn an_organization_gets_the_calls_of_a_member_until_they_leave() {
    let system = system().await;
    let (org, other) = (system.organization().await, system.organization().await);
    let ada = system.person("Ada").await;
    let circle = org.circle("Couriers").await;
    ada.joins_by(&org.invite(&circle).await).await;

    let late = (Utc::now() - TimeDelta::minutes(10)).to_rfc3339();
    let body = json!({"lat": 1.5, "lng": 2.5, "message": "Hilfe!", "recorded_at": late});
    let called = ada.client.post("/sos/trigger", &body).await.ok(202);
    let id = called["sos_id"].as_str().unwrap();
    ada.client
        .post_nothing(&format!("/sos/{id}/resolve"))
        .await
        .ok(200);
    let events = told(&org, id, 2).await;
    let types: Vec<_> = events.iter().map(|event| &event["type"]).collect();
    assert_eq!(types, ["sos.triggered", "sos.resolved"]);
    let data = &events[0]["data"];
    assert_eq!(
        (&data["user_id"], &data["message"]),
        (&json!(ada.id), &json!("Hilfe!"))
    );
    assert_eq!((&data["lat"], &data["late"]), (&json!(1.5), &json!(true)));
    assert_eq!(data.get("audience"), None);
    let theirs = other.admin.get("/api/v1/events?types=sos.*").await;
    assert_eq!(theirs.text(), "");

    ada.client
        .delete(&format!("/circles/{circle}/members/me"))
        .await
        .ok(204);
    let after = ada.client.post("/sos/trigger", &json!({})).await.ok(202);
    let left = org
        .admin
        .get("/api/v1/events?types=sos.*,circle.*")
        .await
        .text();
    assert!(left.contains("circle.member_left"));
    assert!(!left.contains(after["sos_id"].as_str().unwrap()));
}

#[tokio::test]
async fn open_calls_are_listed_for_those_who_ask_later() {
    let (ada, bob) = two_in_a_circle().await;
    let eve = system().await.person("Eve").await;
    let body = json!({"lat": 1.5, "lng": 2.5, "message": "Flat tyre"});
    let called = ada.client.post("/sos/trigger", &body).await;
    let id = called.ok(202)["sos_id"].as_str().unwrap().to_owned();
    // A call is for those who were members when it was made.
    let (joined, circles) = (called.position(), ada.client.get("/circles").await.ok(200));
    eve.joins(circles["data"][0]["id"].as_str().unwrap(), &ada)
        .await;
    for (person, count) in [(&ada, 1), (&bob, 1), (&eve, 0)] {
        let open = person.client.get_at("/sos", &joined).await.ok(200);
        assert_eq!(open["data"].as_array().unwrap().len(), count, "{open}");
    }
    let open = bob.client.get_at("/sos", &joined).await.ok(200);
    let one = &open["data"][0];
    let recorded_at = one["recorded_at"].clone();
    let expected = json!({"sos_id": id, "user_id": ada.id, "name": "Ada", "lat": 1.5, "lng": 2.5,
        "message": "Flat tyre", "late": false, "recorded_at": recorded_at, "acknowledged": false});
    assert_eq!(*one, expected);
    let seen = format!("/sos/{id}/acknowledge");
    bob.client.post_nothing(&seen).await.ok(200);
    let acknowledged = |open: &Value| open["data"][0]["acknowledged"] == true;
    ada.until("/sos", acknowledged).await;
    ada.client
        .post_nothing(&format!("/sos/{id}/resolve"))
        .await
        .ok(200);
    for person in [&ada, &bob] {
        person.until("/sos", |open| open["data"] == json!([])).await;
    }
    system().await.client().get("/sos").await.error(401);
}

#[tokio::test]
async fn a_call_is_not_shown_to_former_members_nor_hidden_by_many_of_somebody_else() {
    let (ada, bob) = two_in_a_circle().await;
    let system = system().await;
    let (loud, circles) = (
        system.person("Loud").await,
        ada.client.get("/circles").await.ok(200),
    );
    let circle = circles["data"][0]["id"].as_str().unwrap();
    loud.joins(circle, &ada).await;
    ada.client.post_nothing("/sos/trigger").await.ok(202);
    for _ in 0..12 {
        loud.client.post_nothing("/sos/trigger").await.ok(202);
    }
    let of = |open: &Value, person: &Person| {
        let calls = open["data"].as_array().unwrap().iter();
        calls.filter(|call| call["user_id"] == person.id).count()
    };
    let most = |open: &Value| of(open, &ada) == 1 && of(open, &loud) == 10;
    bob.until("/sos", most).await;
    let leave = format!("/circles/{circle}/members/me");
    bob.client.delete(&leave).await.ok(204);
    bob.until("/sos", |open| open["data"] == json!([])).await;
}
