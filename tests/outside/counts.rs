//! Limits on the number of each thing: the response says what to do, refusals are counted, and
//! repeats of successful commands are not refused.

use harness::{Client, Person, System, eventually};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::only_begins;
use crate::SHAPE;

/// A system with a limit of two for everything.
async fn narrow() -> &'static System {
    static SYSTEM: OnceCell<System> = OnceCell::const_new();
    let settings = [
        ("WAYPOST_WORKFLOWS_PER_ORGANIZATION", "2"),
        ("WAYPOST_WEBHOOKS_PER_ORGANIZATION", "2"),
        ("WAYPOST_CIRCLES_PER_ORGANIZATION", "2"),
        ("WAYPOST_CIRCLES_PER_PERSON", "2"),
        ("WAYPOST_MEMBERS_PER_CIRCLE", "2"),
        ("WAYPOST_PLACES_PER_CIRCLE", "2"),
        ("WAYPOST_INVITES_PER_CIRCLE", "2"),
    ];
    SYSTEM
        .get_or_init(async || System::start(SHAPE, &settings).await)
        .await
}

/// Whether refusals by this limit are counted.
async fn is_counted(bound: &str) -> bool {
    let line = format!("waypost_bounds_refused_total{{bound=\"{bound}\"}}");
    for (_, client) in narrow().await.clients() {
        if client.get("/metrics").await.text().contains(&line) {
            return true;
        }
    }
    false
}

/// Creates two; a repeat gets the first response at the limit too, and the third is refused.
/// Returns the first.
async fn two_are_all(
    client: &Client,
    path: &str,
    body: &Value,
    (bound, remedy): (&str, &str),
) -> Value {
    let first = client.post_once(path, "first", body).await.ok(201);
    client.post_once(path, "second", body).await.ok(201);
    let refused = client.post(path, body).await.error(409);
    assert!(
        refused.contains(" 2 ") && refused.contains(remedy),
        "{refused}"
    );
    let again = client.post_once(path, "first", body).await.ok(201);
    assert_eq!(again, first);
    assert!(is_counted(bound).await, "{bound}");
    first
}

fn place() -> Value {
    json!({"name": "Home", "lat": 52.5, "lng": 13.4, "radius_m": 100})
}

#[tokio::test]
async fn an_organization_has_so_many_workflows() {
    let (org, other) = (
        narrow().await.organization().await,
        narrow().await.organization().await,
    );
    let path = |id: &str| format!("/api/v1/workflows/{id}");
    for id in ["a", "b"] {
        org.admin.put(&path(id), &only_begins()).await.ok(200);
    }
    let refused = org.admin.put(&path("c"), &only_begins()).await.error(409);
    assert!(
        refused.contains("2 workflows") && refused.contains("under the id"),
        "{refused}"
    );
    assert!(is_counted("workflows").await);
    // Existing ones can be changed, and others are not affected.
    let mut changed = only_begins();
    changed["name"] = json!("Another");
    assert_eq!(
        org.admin.put(&path("a"), &changed).await.ok(200)["version"],
        2
    );
    other.admin.put(&path("c"), &only_begins()).await.ok(200);
}

#[tokio::test]
async fn many_workflows_at_once_pass_the_bound_by_no_more_than_they_are() {
    let org = narrow().await.organization().await;
    let saves = (0..8).map(|nth| {
        let path = format!("/api/v1/workflows/w-{nth}");
        let org = &org;
        async move { org.admin.put(&path, &only_begins()).await.status.as_u16() }
    });
    let saved = futures::future::join_all(saves).await;
    assert!(
        saved.iter().all(|status| [200, 409].contains(status)),
        "{saved:?}"
    );
    // From then on nothing more is accepted.
    let path = "/api/v1/workflows/one-more";
    org.admin.put(path, &only_begins()).await.error(409);
}

#[tokio::test]
async fn an_organization_has_so_many_webhooks_and_a_deleted_one_makes_room() {
    let org = narrow().await.organization().await;
    let (path, body) = (
        "/api/v1/webhooks",
        json!({"url": "https://example.com/hook"}),
    );
    let first = two_are_all(&org.admin, path, &body, ("webhooks", "delete one")).await;
    let id = first["id"].as_str().unwrap();
    org.admin.delete(&format!("{path}/{id}")).await.ok(204);
    eventually("a place to be free", async || {
        (org.admin.post(path, &body).await.status == 201).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_organization_and_a_person_make_so_many_circles() {
    let system = narrow().await;
    let (org, ada) = (system.organization().await, system.person("Ada").await);
    let name = json!({"name": "Team"});
    let told = ("circles", "invite people to one");
    two_are_all(&org.admin, "/api/v1/circles", &name, told).await;
    two_are_all(&ada.client, "/circles", &name, told).await;
}

async fn code(ada: &Person, circle: &str) -> Value {
    let path = format!("/circles/{circle}/invites");
    let invite = ada.client.post_nothing(&path).await.ok(201);
    json!({"code": invite["code"]})
}

#[tokio::test]
async fn a_circle_has_so_many_members_invites_and_places() {
    let system = narrow().await;
    let (ada, bob) = (system.person("Ada").await, system.person("Bob").await);
    let eve = system.person("Eve").await;
    let circle = ada.makes_circle().await;
    let body = code(&ada, &circle).await;
    let join = "/circles/join";
    bob.client.post_once(join, "join", &body).await.ok(200);
    let refused = eve.client.post(join, &body).await.error(409);
    assert!(
        refused.contains("2 members") && refused.contains("leave"),
        "{refused}"
    );
    bob.client.post_once(join, "join", &body).await.ok(200);
    bob.client.post(join, &body).await.ok(200);
    assert!(is_counted("members").await);
    code(&ada, &circle).await;
    let path = format!("/circles/{circle}/invites");
    let refused = ada.client.post_nothing(&path).await.error(409);
    assert!(refused.contains("2 open invitations"), "{refused}");
    assert!(is_counted("invites").await);
    let path = format!("/circles/{circle}/places");
    let first = two_are_all(&ada.client, &path, &place(), ("places", "delete one")).await;
    // Deleting makes room.
    let id = first["id"].as_str().unwrap();
    ada.client.delete(&format!("{path}/{id}")).await.ok(204);
    ada.client.post(&path, &place()).await.ok(201);
    let me = format!("/circles/{circle}/members/me");
    bob.client.delete(&me).await.ok(204);
    eve.client.post(join, &body).await.ok(200);
}

#[tokio::test]
async fn places_added_at_once_never_pass_the_bound() {
    let ada = narrow().await.person("Ada").await;
    let circle = ada.makes_circle().await;
    let path = format!("/circles/{circle}/places");
    let place = place();
    let added = (0..6).map(|_| ada.client.post(&path, &place));
    let added = futures::future::join_all(added).await;
    let made = added.iter().filter(|answer| answer.status == 201).count();
    assert!(made <= 2, "{made}");
    eventually("as many as may", async || {
        let answer = ada.client.post(&path, &place).await;
        (answer.status == 409 && answer.error(409).contains("2 places")).then_some(())
    })
    .await;
}
