//! Circles: membership, who sees whom, which places they watch; organizations' circles.

use chrono::{DateTime, Utc};
use harness::{Answer, Person, System, eventually};
use reqwest::Method;
use serde_json::{Value, json};

use crate::system;

async fn two_in_a_circle() -> (Person, Person, String) {
    let system = system().await;
    let (ada, bob) = (system.person("Ada").await, system.person("Bob").await);
    let circle = ada.makes_circle().await;
    bob.joins(&circle, &ada).await;
    (ada, bob, circle)
}

fn fields(value: &Value) -> Vec<&str> {
    let mut fields: Vec<_> = value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    fields.sort_unstable();
    fields
}

#[tokio::test]
async fn a_circle_is_made_listed_and_joined() {
    let system = system().await;
    let (ada, bob) = (system.person("Ada").await, system.person("Bob").await);
    let made = ada
        .client
        .post("/circles", &json!({"name": " Family "}))
        .await;
    let position = made.position();
    let made = made.ok(201);
    assert_eq!(fields(&made), ["id", "name"]);
    assert_eq!(made["name"], "Family");
    let circle = made["id"].as_str().unwrap();
    let listed = ada.client.get_at("/circles", &position).await.ok(200);
    assert_eq!(listed["total"], 1);
    assert_eq!(listed["data"][0]["id"], circle);
    assert_eq!(
        listed["data"][0]["members"],
        json!([{"id": ada.id, "name": "Ada"}])
    );
    assert_eq!(bob.client.get("/circles").await.ok(200)["data"], json!([]));

    let invite = ada
        .client
        .post_nothing(&format!("/circles/{circle}/invites"))
        .await
        .ok(201);
    assert_eq!(fields(&invite), ["code", "expires_at"]);
    let expires = invite["expires_at"].as_str().unwrap();
    assert!(expires.parse::<DateTime<Utc>>().unwrap() > Utc::now());
    // Joining twice is the same as once.
    for _ in 0..2 {
        let body = json!({"code": invite["code"]});
        let joined = bob.client.post("/circles/join", &body).await;
        let position = joined.position();
        assert_eq!(joined.ok(200), json!({"circle_id": circle}));
        let listed = bob.client.get_at("/circles", &position).await.ok(200);
        assert_eq!(listed["data"][0]["members"].as_array().unwrap().len(), 2);
    }
}

#[tokio::test]
async fn what_cannot_be_joined_is_not() {
    let system = system().await;
    let ada = system.person("Ada").await;
    let unknown = json!({"code": "nonesuch0000"});
    ada.client.post("/circles/join", &unknown).await.error(404);
    for (body, field) in [
        (json!({}), "code"),
        (json!({"code": 7}), "code"),
        (json!([]), "body"),
    ] {
        let message = ada.client.post("/circles/join", &body).await.error(400);
        assert!(message.starts_with(field), "{message}");
    }
    for name in [json!(null), json!(""), json!("x".repeat(201)), json!(1)] {
        let message = ada
            .client
            .post("/circles", &json!({"name": name}))
            .await
            .error(400);
        assert!(message.starts_with("name"), "{message}");
    }
}

#[tokio::test]
async fn an_invite_works_only_for_a_while() {
    let shape = system().await.shape();
    let system = System::start(shape, &[("WAYPOST_INVITE_SECONDS", "0.5")]).await;
    let (ada, bob) = (system.person("Ada").await, system.person("Bob").await);
    let circle = ada.makes_circle().await;
    let invite = format!("/circles/{circle}/invites");
    let invite = ada.client.post_nothing(&invite).await.ok(201);
    let body = json!({"code": invite["code"]});
    let expires = invite["expires_at"].as_str().unwrap();
    let expires: DateTime<Utc> = expires.parse().unwrap();
    eventually("the invite's end", async || {
        (Utc::now() > expires).then_some(())
    })
    .await;
    bob.client.post("/circles/join", &body).await.error(410);
    assert_eq!(bob.client.get("/circles").await.ok(200)["data"], json!([]));
    // A member who joins again gets a confirmation.
    ada.client.post("/circles/join", &body).await.ok(200);
}

#[tokio::test]
async fn a_repeat_with_the_same_idempotency_key_gets_the_first_answer() {
    let system = system().await;
    let ada = system.person("Ada").await;
    let body = json!({"name": "Once"});
    let first = ada.client.post_once("/circles", "k1", &body).await.ok(201);
    assert_eq!(
        ada.client.post_once("/circles", "k1", &body).await.ok(201),
        first
    );
    let other = json!({"name": "Twice"});
    ada.client
        .post_once("/circles", "k1", &other)
        .await
        .error(409);
    let circle = first["id"].as_str().unwrap();

    let invites = format!("/circles/{circle}/invites");
    let first = ada
        .client
        .post_once(&invites, "k2", &json!({}))
        .await
        .ok(201);
    assert_eq!(
        ada.client
            .post_once(&invites, "k2", &json!({}))
            .await
            .ok(201),
        first
    );
    let places = format!("/circles/{circle}/places");
    let home = json!({"name": "Home", "lat": 1, "lng": 2, "radius_m": 50});
    let first = ada.client.post_once(&places, "k3", &home).await.ok(201);
    assert_eq!(
        ada.client.post_once(&places, "k3", &home).await.ok(201),
        first
    );
}

#[tokio::test]
async fn members_see_each_other_until_one_leaves() {
    let (ada, bob, circle) = two_in_a_circle().await;
    let position = bob.is_at(10.0, 20.0).await;
    assert_eq!(ada.sees_at(&position).await, [(bob.id, 10.0)]);
    let history = format!("/location/history?user_id={}", bob.id);
    let seen = ada.client.get(&history).await.ok(200);
    assert_eq!(seen["data"].as_array().unwrap().len(), 1);
    assert_eq!(seen["data"][0]["name"], "Bob");

    let left = bob
        .client
        .delete(&format!("/circles/{circle}/members/me"))
        .await;
    left.ok(204);
    let position = left.position();
    assert_eq!(ada.sees_at(&position).await, []);
    ada.client.get(&history).await.error(403);
    assert_eq!(bob.sees_at(&position).await, [(bob.id, 10.0)]);
    bob.client
        .delete(&format!("/circles/{circle}/members/me"))
        .await
        .error(404);

    // After rejoining, the time in between stays hidden.
    let between = bob.is_at(11.0, 20.0).await;
    bob.joins(&circle, &ada).await;
    assert_eq!(ada.sees_at(&between).await, [(bob.id, 10.0)]);
    let position = bob.is_at(12.0, 20.0).await;
    assert_eq!(ada.sees_at(&position).await, [(bob.id, 12.0)]);
    let seen = ada.client.get(&history).await.ok(200);
    let lats: Vec<_> = seen["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["lat"])
        .collect();
    assert_eq!(lats, [12.0, 10.0]);
}

#[tokio::test]
async fn places_are_added_listed_and_removed() {
    let (ada, bob, circle) = two_in_a_circle().await;
    let path = format!("/circles/{circle}/places");
    let home = json!({"name": "Zu Hause ✓", "lat": 52.5, "lng": 13.4, "radius_m": 100});
    let added = ada.client.post(&path, &home).await;
    let position = added.position();
    let id = added.ok(201)["id"].as_str().unwrap().to_owned();
    let listed = bob.client.get_at(&path, &position).await.ok(200);
    assert_eq!(fields(&listed), ["data"]);
    let place = &listed["data"][0];
    assert_eq!(place["id"], id.as_str());
    assert_eq!(
        (&place["name"], &place["lat"]),
        (&home["name"], &home["lat"])
    );
    assert_eq!(
        (&place["lng"], place["radius_m"].as_f64()),
        (&home["lng"], Some(100.0))
    );

    let one = format!("{path}/{id}");
    let removed = bob.client.delete(&one).await;
    removed.ok(204);
    let listed = ada.client.get_at(&path, &removed.position()).await.ok(200);
    assert_eq!(listed, json!({"data": []}));
    ada.client.delete(&one).await.error(404);
    for (field, wrong) in [
        ("name", json!("")),
        ("lat", json!(90.1)),
        ("lng", json!("13")),
        ("radius_m", json!(1)),
        ("radius_m", json!(null)),
    ] {
        let mut body = home.clone();
        body[field] = wrong;
        let message = ada.client.post(&path, &body).await.error(400);
        assert!(message.starts_with(field), "{message}");
    }
}

#[tokio::test]
async fn a_stranger_finds_nothing() {
    let (ada, bob, circle) = two_in_a_circle().await;
    let eve = system().await.person("Eve").await;
    let place = json!({"name": "Home", "lat": 52.5, "lng": 13.4, "radius_m": 100});
    let places = format!("/circles/{circle}/places");
    let added = ada.client.post(&places, &place).await.ok(201);
    let position = bob.is_at(10.0, 20.0).await;
    let one = format!("{places}/{}", added["id"].as_str().unwrap());
    for (method, path) in [
        (Method::GET, places.as_str()),
        (Method::POST, &places),
        (Method::DELETE, &one),
        (Method::POST, &format!("/circles/{circle}/invites")),
        (Method::DELETE, &format!("/circles/{circle}/members/me")),
    ] {
        let request = eve.client.request(method.clone(), path);
        let request = match method {
            Method::POST => request
                .header("content-type", "application/json")
                .body(place.to_string()),
            _ => request,
        };
        let answer = Answer::to(request).await;
        let theirs = answer.error(404);
        // The same response as for a circle that does not exist.
        let nowhere = path.replace(&circle, "none");
        let request = eve.client.request(method.clone(), &nowhere);
        let request = match method {
            Method::POST => request
                .header("content-type", "application/json")
                .body(place.to_string()),
            _ => request,
        };
        assert_eq!(
            Answer::to(request).await.error(404),
            theirs,
            "{method} {path}"
        );
    }
    assert_eq!(eve.sees_at(&position).await, []);
    for person in [ada.id, bob.id, 1] {
        let history = format!("/location/history?user_id={person}");
        eve.client.get(&history).await.error(403);
    }
}

#[tokio::test]
async fn an_organization_has_circles_too() {
    let system = system().await;
    let (org, other) = (system.organization().await, system.organization().await);
    let bob = system.person("Bob").await;
    let body = json!({"name": "Couriers"});
    let made = org.admin.post("/api/v1/circles", &body).await.ok(201);
    assert_eq!(fields(&made), ["id", "name"]);
    let circle = made["id"].as_str().unwrap();
    let invites = format!("/api/v1/circles/{circle}/invites");
    let invite = org.admin.post_nothing(&invites).await.ok(201);
    assert_eq!(fields(&invite), ["code", "expiresAt"]);
    bob.joins_by(invite["code"].as_str().unwrap()).await;
    let listed = bob.client.get("/circles").await.ok(200);
    assert_eq!(listed["data"][0]["id"], circle);
    assert_eq!(listed["data"][0]["name"], "Couriers");

    other.admin.post_nothing(&invites).await.error(404);
    let may_not = org.client(&["records:write"]).await;
    for path in ["/api/v1/circles", &invites] {
        let message = may_not.post(path, &body).await.error(403);
        assert!(message.contains("circles:manage"), "{message}");
        system.client().post(path, &body).await.error(401);
        bob.client.post(path, &body).await.error(401);
    }
    // An organization cannot invite to a circle of persons.
    let theirs = bob.makes_circle().await;
    let path = format!("/api/v1/circles/{theirs}/invites");
    org.admin.post_nothing(&path).await.error(404);
    org.admin
        .post("/api/v1/circles", &json!({}))
        .await
        .error(400);
}

#[tokio::test]
async fn nobody_gets_in_without_a_token() {
    let system = system().await;
    let key = system.organization().await.admin;
    for (method, path) in [
        (Method::GET, "/circles"),
        (Method::POST, "/circles"),
        (Method::POST, "/circles/join"),
        (Method::POST, "/circles/x/invites"),
        (Method::DELETE, "/circles/x/members/me"),
        (Method::GET, "/circles/x/places"),
        (Method::POST, "/circles/x/places"),
        (Method::DELETE, "/circles/x/places/y"),
        (Method::POST, "/location/update"),
        (Method::POST, "/location/pause"),
        (Method::POST, "/location/resume"),
        (Method::GET, "/location/latest"),
        (Method::GET, "/location/history"),
        (Method::POST, "/sos/trigger"),
        (Method::POST, "/sos/x/acknowledge"),
        (Method::POST, "/sos/x/resolve"),
    ] {
        for client in [&system.client(), &key, &system.client().with_key("wrong")] {
            let request = client.request(method.clone(), path);
            let answer = Answer::to(request.header("content-type", "application/json")).await;
            answer.error(401);
        }
    }
}

#[tokio::test]
async fn a_forgotten_member_is_gone_from_every_answer() {
    let (ada, bob, circle) = two_in_a_circle().await;
    let places = format!("/circles/{circle}/places");
    let home = json!({"name": "Bob's", "lat": 1, "lng": 2, "radius_m": 50});
    bob.client.post(&places, &home).await.ok(201);
    let seen = bob.is_at(10.0, 20.0).await;
    assert_eq!(ada.sees_at(&seen).await, [(bob.id, 10.0)]);
    system().await.waypost(&["forget", &bob.email]).await;
    let left = json!([{"id": ada.id, "name": "Ada"}]);
    ada.until("/circles", |listed| listed["data"][0]["members"] == left)
        .await;
    ada.until("/location/latest", |seen| seen["data"] == json!([]))
        .await;
    ada.until(&places, |listed| listed["data"] == json!([]))
        .await;
    let history = format!("/location/history?user_id={}", bob.id);
    ada.client.get(&history).await.error(403);
    let called = ada.client.post("/sos/trigger", &json!({})).await.ok(202);
    assert_eq!(called["audience"], json!([]));
    bob.client.get("/circles").await.error(401);
}
