//! `/dashboard/map` and `/app`: circles as they move.

use chrono::{DateTime, TimeDelta, Utc};
use harness::{Owner, Person, System, eventually};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{SHAPE, system};

/// Creates a circle of the organization on its own page.
async fn circle(owner: &Owner, name: &str) -> String {
    let body = json!({"name": name});
    let made = owner.send(Method::POST, "/dashboard/api/v1/circles", Some(&body));
    made.await.ok(201)["id"].as_str().unwrap().to_owned()
}

async fn joins(owner: &Owner, person: &Person, circle: &str) {
    let path = format!("/dashboard/api/v1/circles/{circle}/invites");
    let invite = owner.send(Method::POST, &path, Some(&json!({}))).await;
    let invite = invite.ok(201);
    person.joins_by(invite["code"].as_str().unwrap()).await;
}

async fn joined(owner: &Owner, person: &Person) -> String {
    let circle = circle(owner, "Field").await;
    joins(owner, person, &circle).await;
    circle
}

/// The data for the map's script, once it is as wanted.
async fn now(owner: &Owner, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    eventually(what, async || {
        let now = owner.page("/dashboard/map/now").await;
        let now = (now.status == 200).then(|| now.json())?;
        wanted(&now).then_some(now)
    })
    .await
}

fn trail_of(answer: &Value, person: &Person) -> Option<Vec<f64>> {
    let trails = answer.get("trails").or(answer.get("data"))?.as_array()?;
    let trail = trails.iter().find(|one| one["user_id"] == person.id)?;
    let fixes = trail["fixes"].as_array()?.iter();
    Some(fixes.map(|fix| fix["lat"].as_f64().unwrap()).collect())
}

/// Sends fixes: `(seconds from a time, latitude)`.
async fn went(person: &Person, from: DateTime<Utc>, fixes: &[(i64, f64)]) -> String {
    let fixes = fixes.iter().map(|(second, lat)| {
        let at = from + TimeDelta::seconds(*second);
        json!({"lat": lat, "lng": 9.5, "recorded_at": at.to_rfc3339()})
    });
    let fixes: Vec<Value> = fixes.collect();
    let sent = person.client.post("/location/update", &json!(fixes)).await;
    sent.ok(202);
    sent.position()
}

#[tokio::test]
async fn the_map_lists_the_members_and_places_of_the_own_circles_alone() {
    let system = system().await;
    let owner = Owner::sign_in(system).await;
    let empty = owner.page("/dashboard/map").await;
    assert_eq!(empty.status, 200, "{}", empty.text());
    assert!(empty.text().contains("Your organization has no circle yet"));
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
    let of_another = format!("/dashboard/map?circle={circle}");
    assert_eq!(stranger.page(&of_another).await.status, 404);
}

#[tokio::test]
async fn the_map_shows_one_circle_or_all_by_their_names() {
    let system = system().await;
    let owner = Owner::sign_in(system).await;
    let (ada, bob) = (
        system.person("Ada North").await,
        system.person("Bob South").await,
    );
    let (north, south) = (circle(&owner, "North").await, circle(&owner, "South").await);
    joins(&owner, &ada, &north).await;
    joins(&owner, &bob, &south).await;
    let page = owner.page("/dashboard/map").await.text();
    for name in ["North", "South", "Ada North", "Bob South"] {
        assert!(page.contains(name), "{name}: {page}");
    }
    let page = owner.page(&format!("/dashboard/map?circle={south}")).await;
    let page = page.text();
    assert!(
        page.contains("Bob South") && !page.contains("Ada North"),
        "{page}"
    );
    let now = format!("/dashboard/map/now?circle={south}");
    let now = owner.page(&now).await.ok(200);
    assert!(trail_of(&now, &bob).is_some() && trail_of(&now, &ada).is_none());
    assert_eq!(owner.page("/dashboard/map?circle=none").await.status, 404);
    // Circles can only be created from our own pages.
    let request = owner
        .client
        .request(Method::POST, "/dashboard/api/v1/circles");
    let request = request.header("cookie", &owner.cookie);
    let request = request.header("origin", "https://elsewhere.example");
    let request = request.header("content-type", "application/json");
    let request = request.body(json!({"name": "Foreign"}).to_string());
    assert_eq!(request.send().await.unwrap().status(), 403);
}

#[tokio::test]
async fn trails_hold_the_last_hour_thinned_for_those_who_may_see_them() {
    let system = system().await;
    let owner = Owner::sign_in(system).await;
    let (ada, bob) = (system.person("Ada").await, system.person("Bob").await);
    let tier = ["account", "tier", &ada.email, "enterprise"];
    system.waypost(&tier).await;
    // Before she joined: must not be shown.
    went(&ada, Utc::now() - TimeDelta::minutes(30), &[(0, 1.0)]).await;
    let field = joined(&owner, &ada).await;
    let family = ada.makes_circle().await;
    bob.joins(&family, &ada).await;
    // Steps of 15 seconds: the newest fix in each is kept.
    let step = 15 - Utc::now().timestamp() % 15;
    let fixes = [
        (step, 2.0),
        (step + 1, 3.0),
        (step + 15, 4.0),
        (step + 16, 5.0),
    ];
    let from = DateTime::from_timestamp(Utc::now().timestamp(), 0).unwrap();
    let position = went(&ada, from, &fixes).await;
    let trails = async || {
        bob.client
            .get_at("/location/trails", &position)
            .await
            .ok(200)
    };
    assert_eq!(trail_of(&trails().await, &ada), Some(vec![3.0, 5.0]));
    let own = ada.client.get("/location/trails").await.ok(200);
    assert_eq!(trail_of(&own, &ada), Some(vec![1.0, 3.0, 5.0]));
    let seen = |now: &Value| trail_of(now, &ada) == Some(vec![3.0, 5.0]);
    let unseen = |now: &Value| trail_of(now, &ada).is_none();
    now(&owner, "the trail", seen).await;

    let stranger = Owner::sign_in(system).await;
    let eve = system.person("Eve").await;
    assert!(unseen(&stranger.page("/dashboard/map/now").await.ok(200)));
    assert!(unseen(&eve.client.get("/location/trails").await.ok(200)));

    let until = Utc::now() + TimeDelta::hours(1);
    let hidden = json!({"until": until.to_rfc3339()});
    let paused = ada.client.post("/location/pause", &hidden).await;
    assert_eq!(paused.status, 204);
    let position = paused.position();
    let seen_by_bob = bob.client.get_at("/location/trails", &position).await;
    assert!(unseen(&seen_by_bob.ok(200)));
    now(&owner, "nothing of whoever hides", unseen).await;
    let resumed = ada.client.post_nothing("/location/resume").await;
    assert_eq!(resumed.status, 204);
    // Fixes from the future, when she is not hidden any more.
    now(&owner, "the trail again", seen).await;
    let membership = format!("/circles/{field}/members/me");
    let left = ada.client.delete(&membership).await;
    assert_eq!(left.status, 204);
    now(&owner, "nothing of whoever left", unseen).await;
}

#[tokio::test]
async fn the_map_finds_open_calls_for_help_of_its_members_alone() {
    // At the end its log is read from the first event.
    let system = &System::start(SHAPE, &[]).await;
    let owner = Owner::sign_in(system).await;
    let (ada, bob) = (system.person("Ada").await, system.person("Bob").await);
    let field = joined(&owner, &ada).await;
    joins(&owner, &bob, &field).await;
    let call = json!({"message": "Flat <tyre>", "lat": 53.5, "lng": 9.9});
    let called = ada.client.post("/sos/trigger", &call).await.ok(202);
    let calls = |now: &Value| now["calls"].as_array().unwrap().len();
    let open = now(&owner, "the call", |now| calls(now) == 1).await;
    let one = &open["calls"][0];
    assert_eq!(
        (&one["message"], &one["lat"]),
        (&call["message"], &call["lat"])
    );
    assert_eq!(
        (&one["name"], &one["acknowledged"]),
        (&json!("Ada"), &json!(false))
    );
    let page = owner.page("/dashboard/map").await.text();
    assert!(
        page.contains("SOS: Ada") && page.contains("Flat &lt;tyre&gt;"),
        "{page}"
    );
    let stranger = Owner::sign_in(system).await;
    assert_eq!(calls(&stranger.page("/dashboard/map/now").await.ok(200)), 0);

    let id = called["sos_id"].as_str().unwrap();
    let answered = |what: &str| format!("/sos/{id}/{what}");
    bob.client
        .post_nothing(&answered("acknowledge"))
        .await
        .ok(200);
    now(&owner, "the acknowledgement", |now| {
        now["calls"][0]["acknowledged"] == true
    })
    .await;
    bob.client.post_nothing(&answered("resolve")).await.ok(200);
    now(&owner, "the end", |now| calls(now) == 0).await;
    ada.client.post_nothing("/sos/trigger").await.ok(202);
    now(&owner, "another call", |now| calls(now) == 1).await;
    let membership = format!("/circles/{field}/members/me");
    let left = ada.client.delete(&membership).await;
    assert_eq!(left.status, 204);
    now(&owner, "nothing of whoever left", |now| calls(now) == 0).await;
    for name in ["sos_calls", "crossings"] {
        let verified = system.waypost(&["projection", "verify", name]).await;
        assert_eq!(verified["differences"], 0, "{verified}");
    }
}

#[tokio::test]
async fn the_staff_answers_calls_of_its_circles_members_alone() {
    let system = system().await;
    let (owner, stranger) = (Owner::sign_in(system).await, Owner::sign_in(system).await);
    let (ada, bob) = (system.person("Ada").await, system.person("Bob").await);
    let field = joined(&owner, &ada).await;
    joins(&owner, &bob, &field).await;
    let call = json!({"lat": 1, "lng": 2});
    let called = ada.client.post("/sos/trigger", &call).await.ok(202);
    let id = called["sos_id"].as_str().unwrap();
    now(&owner, "the call", |now| {
        now["calls"][0]["acknowledged"] == false
    })
    .await;
    let answer = async |owner: &Owner, what: &str| {
        let path = format!("/dashboard/sos/{id}/{what}");
        owner.send(Method::POST, &path, None).await
    };
    for what in ["acknowledge", "resolve"] {
        answer(&stranger, what).await.error(404);
        let path = format!("/dashboard/sos/{id}/{what}");
        let nobody = owner.client.request(Method::POST, &path);
        let nobody = nobody.header("origin", owner.client.base());
        harness::Answer::to(nobody).await.error(401);
        let elsewhere = owner.client.request(Method::POST, &path);
        let elsewhere = elsewhere.header("cookie", &owner.cookie);
        let elsewhere = elsewhere.header("origin", "https://evil.example");
        harness::Answer::to(elsewhere).await.error(403);
    }
    assert_eq!(
        answer(&owner, "acknowledge").await.ok(200)["status"],
        "acknowledged"
    );
    answer(&owner, "acknowledge").await.ok(200);
    now(&owner, "the answer", |now| {
        now["calls"][0]["acknowledged"] == true
    })
    .await;
    answer(&owner, "resolve").await.ok(200);
    let is_over = |now: &Value| now["calls"] == json!([]);
    now(&owner, "the end", is_over).await;

    // A person who has left is no longer the organization's to answer.
    let called = ada.client.post_nothing("/sos/trigger").await.ok(202);
    let id = called["sos_id"].as_str().unwrap();
    now(&owner, "another call", |now| {
        now["calls"][0]["sos_id"] == id
    })
    .await;
    let membership = format!("/circles/{field}/members/me");
    assert_eq!(ada.client.delete(&membership).await.status, 204);
    eventually("the leave to be known", async || {
        let path = format!("/dashboard/sos/{id}/acknowledge");
        let answer = owner.send(Method::POST, &path, None).await;
        (answer.status == 404).then_some(())
    })
    .await;
    bob.client
        .post_nothing(&format!("/sos/{id}/resolve"))
        .await
        .ok(200);
}

#[tokio::test]
async fn maps_draw_tiles_of_the_one_server_that_the_operator_names() {
    let tiles = "https://tiles.example:8443/a/{z}/{x}/{y}.png?key=k&v=1";
    let settings = [
        ("WAYPOST_MAP_TILES", tiles),
        ("WAYPOST_MAP_ATTRIBUTION", "© <Makers>"),
        (
            "WAYPOST_MAP_ATTRIBUTION_URL",
            "https://makers.example/terms",
        ),
    ];
    let system = System::start(SHAPE, &settings).await;
    let owner = Owner::sign_in(&system).await;
    let client = system.client();
    let own = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'";
    let policy =
        |page: &harness::Answer| page.header("content-security-policy").unwrap().to_owned();
    for page in [owner.page("/dashboard/map").await, client.get("/app").await] {
        let allowed = format!("{own} https://tiles.example:8443; connect-src 'self';");
        assert!(policy(&page).starts_with(&allowed), "{}", policy(&page));
        let text = page.text();
        assert!(
            text.contains("data-tiles=\"https:&#x2f;&#x2f;tiles.example:8443&#x2f;a&#x2f;{z}"),
            "{text}"
        );
        assert!(
            text.contains("© &lt;Makers&gt;") && text.contains("terms\""),
            "{text}"
        );
    }
    for page in [owner.page("/dashboard").await, client.get("/docs").await] {
        assert!(
            policy(&page).starts_with(&format!("{own}; ")),
            "{}",
            policy(&page)
        );
    }
}

#[tokio::test]
async fn tiles_that_a_policy_cannot_name_end_the_program_with_the_settings_name() {
    for tiles in [
        "https://{s}.tiles.example/{z}/{x}/{y}.png",
        "http://tiles.example/{z}/{x}/{y}.png",
    ] {
        let started = tokio::process::Command::new(harness::programs().join("query-api"))
            .env("WAYPOST_MAP_TILES", tiles)
            .output();
        let output = started.await.expect("query-api ends");
        assert!(!output.status.success());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("WAYPOST_MAP_TILES"), "{said}");
    }
}

#[tokio::test]
async fn the_map_needs_a_session_and_the_own_page_holds_nothing_of_anybody() {
    let client = system().await.client();
    let app = client.get("/app").await;
    assert_eq!(app.status, 200);
    let policy = app.header("content-security-policy").unwrap_or_default();
    assert!(policy.contains("default-src 'none'"), "{policy}");
    assert!(policy.contains("img-src 'self';"), "{policy}");
    let text = app.text();
    assert!(!text.contains("style=") && !text.contains("onclick"));
    assert!(!text.contains("data-tiles"), "{text}");
    for path in ["/dashboard/map", "/dashboard/map/now"] {
        assert_eq!(client.get(path).await.status, 303, "{path}");
    }
    client.get("/location/trails").await.error(401);
    let scripts = ["map.js", "tiles.js", "live.js", "app.js", "live_map.js"];
    for asset in scripts.iter().chain(&["app.css", "world.json"]) {
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
