//! Two organizations in one system: nothing of one can be seen, used or changed by the other.

use harness::{Answer, Organization};
use reqwest::Method;
use serde_json::{Value, json};

use super::only_begins;
use crate::system;

/// One of everything.
struct Belongings {
    workflow: String,
    run: String,
    webhook: String,
    key: String,
    /// The position at which all of it can be read.
    position: String,
}

fn text(value: &Value) -> String {
    value.as_str().expect("text").to_owned()
}

async fn furnish(org: &Organization<'_>) -> Belongings {
    let workflow = org.workflow(&only_begins()).await;
    let run = org.trigger(&workflow, &json!({"secret": org.id})).await;
    org.ended(&run).await;
    let hook = json!({"url": "http://127.0.0.1:1/", "events": ["run.succeeded"]});
    let hook = org.admin.post("/api/v1/webhooks", &hook).await.ok(201);
    let terms = json!({"name": "theirs", "scopes": ["admin"]});
    let key = org.admin.post("/api/v1/keys", &terms).await.ok(201);
    let contact = json!({"email": "a@b.c", "owner": org.id});
    let path = "/api/v1/records/contacts/mine";
    let written = org.admin.put(path, &contact).await;
    org.admin.get_at(path, &written.position()).await.ok(200);
    Belongings {
        workflow,
        run,
        webhook: text(&hook["id"]),
        key: text(&key["keyId"]),
        position: written.position(),
    }
}

#[tokio::test]
async fn what_belongs_to_another_is_not_found() {
    let system = system().await;
    let (owner, other) = (system.organization().await, system.organization().await);
    let theirs = furnish(&owner).await;
    let Belongings {
        workflow,
        run,
        webhook,
        key,
        position,
    } = &theirs;
    for (method, path) in [
        (Method::GET, format!("/api/v1/workflows/{workflow}")),
        (Method::GET, format!("/api/v1/workflows/{workflow}/runs")),
        (
            Method::POST,
            format!("/api/v1/workflows/{workflow}/trigger"),
        ),
        (Method::GET, format!("/api/v1/runs/{run}")),
        (Method::POST, format!("/api/v1/runs/{run}/cancel")),
        (Method::GET, format!("/api/v1/webhooks/{webhook}")),
        (
            Method::GET,
            format!("/api/v1/webhooks/{webhook}/deliveries"),
        ),
        (Method::DELETE, format!("/api/v1/webhooks/{webhook}")),
        (Method::DELETE, format!("/api/v1/keys/{key}")),
        (Method::GET, "/api/v1/records/contacts/mine".to_owned()),
        (Method::DELETE, "/api/v1/records/contacts/mine".to_owned()),
    ] {
        let answer = Answer::to(other.admin.request(method.clone(), &path)).await;
        assert_eq!(answer.status, 404, "{method} {path}");
        answer.error(404);
    }
    let change = json!({"status": "DISABLED"});
    let path = format!("/api/v1/webhooks/{webhook}");
    other.admin.patch(&path, &change).await.error(404);
    let revoke = ["key", "revoke", "--org", &other.id, key];
    let output = system.waypost_output(&revoke, b"").await;
    assert!(
        !output.status.success(),
        "an operator mixes nothing up either"
    );

    // All of it is still there.
    let runs = format!("/api/v1/workflows/{workflow}/runs");
    let runs = owner.admin.get_at(&runs, position).await.ok(200);
    assert_eq!(runs["total"], 1);
    assert_eq!(owner.admin.get(&path).await.ok(200)["status"], "ENABLED");
    let keys = owner.admin.get_at("/api/v1/keys", position).await.ok(200);
    assert_eq!(keys["total"], 2);
    let contact = owner.admin.get("/api/v1/records/contacts/mine").await;
    assert_eq!(contact.ok(200)["owner"], owner.id);
}

#[tokio::test]
async fn lists_and_exports_hold_only_ones_own() {
    let system = system().await;
    let (owner, other) = (system.organization().await, system.organization().await);
    let theirs = furnish(&owner).await;
    for list in ["/api/v1/workflows", "/api/v1/webhooks"] {
        let answer = other.admin.get(list).await.ok(200);
        assert_eq!((&answer["total"], &answer["data"]), (&json!(0), &json!([])));
    }
    let keys = other.admin.get_at("/api/v1/keys", &theirs.position).await;
    assert_eq!(keys.ok(200)["total"], 1);
    assert!(!keys.text().contains(&theirs.key));
    for format in ["csv", "excel", "pdf"] {
        let path = format!("/api/export/contacts?format={format}");
        let export = other.admin.get(&path).await;
        assert!(!String::from_utf8_lossy(&export.body).contains(&owner.id));
    }
    let export = other.admin.get("/api/export/contacts").await.text();
    assert_eq!(export.lines().count(), 1);
}

#[tokio::test]
async fn the_same_ids_in_two_organizations_are_two_things() {
    let system = system().await;
    let (first, second) = (system.organization().await, system.organization().await);
    for (org, name) in [(&first, "first"), (&second, "second")] {
        let mut definition = only_begins();
        definition["name"] = json!(name);
        let saved = org.admin.put("/api/v1/workflows/same", &definition).await;
        assert_eq!(saved.ok(200)["version"], 1, "versions are counted apart");
        let contact = json!({"email": "a@b.c", "city": name});
        let path = "/api/v1/records/contacts/same";
        org.admin.put(path, &contact).await.ok(201);
        org.trigger("same", &json!({"name": name})).await;
    }
    for (org, name) in [(&first, "first"), (&second, "second")] {
        let read = org
            .until("/api/v1/workflows/same", |read| read["version"] == 1)
            .await;
        assert_eq!(read["name"], name);
        let contact = org.until("/api/v1/records/contacts/same", |_| true).await;
        assert_eq!(contact["city"], name);
        let runs = "/api/v1/workflows/same/runs";
        let runs = org.until(runs, |runs| runs["total"] == 1).await;
        assert_eq!(runs["data"][0]["triggerPayload"]["name"], name);
    }
    first
        .admin
        .delete("/api/v1/records/contacts/same")
        .await
        .ok(204);
    let kept = second.admin.get("/api/v1/records/contacts/same").await;
    kept.ok(200);
}

#[tokio::test]
async fn a_place_in_one_organizations_list_leads_nowhere_in_anothers() {
    let system = system().await;
    let (owner, other) = (system.organization().await, system.organization().await);
    for _ in 0..3 {
        owner.workflow(&only_begins()).await;
    }
    let own = other.workflow(&only_begins()).await;
    owner
        .until("/api/v1/workflows", |list| list["total"] == 3)
        .await;
    other
        .until("/api/v1/workflows", |list| list["total"] == 1)
        .await;
    let page = owner.admin.get("/api/v1/workflows?limit=1").await;
    let next = page.next().expect("a next page");
    let answer = other.admin.get(&next).await;
    if answer.status == 200 {
        let list = answer.json();
        let ids = list["data"].as_array().unwrap().iter();
        assert!(
            ids.map(|item| &item["workflowId"]).all(|id| *id == own),
            "{list}"
        );
    } else {
        answer.error(400);
    }
}
