//! `/dashboard/map` and `/app`: circles as they move.

use harness::{Person, eventually};
use serde_json::{Value, json};

use super::dashboard::Owner;
use crate::system;

async fn joined(owner: &Owner, person: &Person) -> String {
    let terms = json!({"name": "Circles", "scopes": ["circles:manage"]});
    let key = owner.key(&terms).await;
    let client = owner.client.with_key(key["key"].as_str().unwrap());
    let made = eventually("the key to be known", async || {
        let body = json!({"name": "Field"});
        let made = client.post("/api/v1/circles", &body).await;
        (made.status == 201).then_some(made)
    });
    let circle = made.await.json()["id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/circles/{circle}/invites");
    let invite = client.post(&path, &json!({})).await.ok(201);
    person.joins_by(invite["code"].as_str().unwrap()).await;
    circle
}

#[tokio::test]
async fn the_map_lists_the_members_and_places_of_the_own_circles_alone() {
    let system = system().await;
    let owner = Owner::sign_in(system).await;
    let empty = owner.page("/dashboard/map").await;
    assert_eq!(empty.status, 200, "{}", empty.text());
    assert!(empty.text().contains("Nobody is in a circle"));
    let person = system.person("Grace <Field>").await;
    let circle = joined(&owner, &person).await;
    let place = json!({"name": "Depot", "lat": 53.5, "lng": 9.9, "radius_m": 150});
    let places = format!("/circles/{circle}/places");
    let placed = person.client.post(&places, &place).await;
    placed.ok(201);
    let path = format!("/dashboard/map?position={}", placed.position());
    let page = owner.page(&path).await.text();
    assert!(page.contains("Grace &lt;Field&gt;"), "{page}");
    assert!(page.contains("Depot") && !page.contains("style="), "{page}");

    let stranger = Owner::sign_in(system).await;
    let page = stranger.page("/dashboard/map").await.text();
    assert!(!page.contains("Grace") && !page.contains("Depot"), "{page}");
}

#[tokio::test]
async fn the_map_needs_a_session_and_the_own_page_holds_nothing_of_anybody() {
    let client = system().await.client();
    let app = client.get("/app").await;
    assert_eq!(app.status, 200);
    let policy = app.header("content-security-policy").unwrap_or_default();
    assert!(policy.contains("default-src 'none'"), "{policy}");
    let text = app.text();
    assert!(!text.contains("style=") && !text.contains("onclick"));
    for asset in ["map.js", "app.js", "app.css", "live_map.js", "world.json"] {
        let answer = client.get(&format!("/dashboard/assets/{asset}")).await;
        assert_eq!(answer.status, 200, "{asset}");
        assert!(answer.text().len() < 150_000, "{asset}");
    }
    let world = client.get("/dashboard/assets/world.json").await.ok(200);
    assert!(
        world["land"]
            .as_array()
            .is_some_and(|land| land.len() > 100)
    );
    let lines = world["borders"].as_array().unwrap();
    let even = |line: &Value| line.as_array().is_some_and(|line| line.len() % 2 == 0);
    assert!(lines.iter().all(even));
}
