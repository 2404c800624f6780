//! `/api/v1/keys`: created, listed, revoked.

use std::time::Duration;

use harness::{Client, Organization, eventually, eventually_within};
use serde_json::{Value, json};

use crate::system;

const KEYS: &str = "/api/v1/keys";
/// A revoked or expired key stops working everywhere within a second.
const A_SECOND: Duration = Duration::from_secs(1);

fn terms(scopes: &[&str]) -> Value {
    json!({"name": "test", "scopes": scopes})
}

async fn only(org: &Organization<'_>, key_id: &Value) -> Value {
    let list = org
        .until(KEYS, |list| item(list, key_id).is_some_and(|_| true))
        .await;
    item(&list, key_id).unwrap().clone()
}

fn item<'l>(list: &'l Value, key_id: &Value) -> Option<&'l Value> {
    let mut items = list["data"].as_array().unwrap().iter();
    items.find(|item| item["keyId"] == *key_id)
}

/// Waits until a key is refused by both commands and queries.
async fn until_refused(client: &Client) {
    eventually_within(A_SECOND, "the key to stop working everywhere", async || {
        let command = client.post_nothing("/api/v1/workflows/none/trigger").await;
        let query = client.get("/api/v1/runs/none").await;
        (command.status == 401 && query.status == 401).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_key_is_shown_once_and_has_the_promised_form() {
    let org = system().await.organization().await;
    let answer = org.admin.post(KEYS, &terms(&["workflows:trigger"])).await;
    let created = answer.ok(201);
    let mut fields: Vec<_> = created.as_object().unwrap().keys().collect();
    fields.sort();
    assert_eq!(fields, ["key", "keyId"]);
    let key = created["key"].as_str().unwrap();
    let rest = key.strip_prefix("wp_").expect("wp_");
    assert!(rest.len() >= 40, "{} characters", rest.len());
    assert!(rest.bytes().all(|byte| byte.is_ascii_alphanumeric()));

    let list = org.admin.get_at(KEYS, &answer.position()).await;
    assert!(!list.text().contains(key), "a key is never shown again");
    let other = org.admin.post(KEYS, &terms(&["workflows:trigger"])).await;
    assert_ne!(other.ok(201)["key"], created["key"]);
}

#[tokio::test]
async fn keys_are_listed_newest_first_with_their_terms() {
    let org = system().await.organization().await;
    let full = json!({
        "name": "Büro ☎", "scopes": ["read:leads", "export:contacts:read"], "rateLimit": 50,
        "expiresAt": "2999-01-01T00:00:00Z",
    });
    let first = org.admin.post(KEYS, &full).await.ok(201);
    let plain = org.admin.post(KEYS, &terms(&["admin"])).await;
    let second = plain.ok(201);
    let list = org.admin.get_at(KEYS, &plain.position()).await.ok(200);
    assert_eq!(
        (&list["total"], &list["page"], &list["limit"]),
        (&json!(3), &json!(1), &json!(20))
    );
    let ids: Vec<_> = list["data"].as_array().unwrap().iter().collect();
    assert_eq!(ids[0]["keyId"], second["keyId"]);
    assert_eq!(ids[1]["keyId"], first["keyId"]);

    let mut item = ids[1].clone();
    let created_at = item.as_object_mut().unwrap().remove("createdAt").unwrap();
    chrono::DateTime::parse_from_rfc3339(created_at.as_str().unwrap()).unwrap();
    let expires_at = item.as_object_mut().unwrap().remove("expiresAt").unwrap();
    let expires_at = chrono::DateTime::parse_from_rfc3339(expires_at.as_str().unwrap()).unwrap();
    assert_eq!(expires_at.to_rfc3339(), "2999-01-01T00:00:00+00:00");
    let expected = json!({
        "keyId": first["keyId"], "name": "Büro ☎",
        "scopes": ["read:leads", "export:contacts:read"], "rateLimit": 50, "lastUsedAt": null,
        "createdBy": ids[2]["keyId"],
    });
    assert_eq!(item, expected);
    let plain = ids[0];
    assert_eq!(
        (&plain["rateLimit"], &plain["expiresAt"]),
        (&json!(1000), &Value::Null)
    );
}

#[tokio::test]
async fn a_list_shows_when_a_key_was_last_used() {
    let org = system().await.organization().await;
    let (client, created) = org.unused_key(&terms(&["workflows:read"])).await;
    assert_eq!(
        only(&org, &created["keyId"]).await["lastUsedAt"],
        Value::Null
    );
    client.get("/api/v1/workflows").await.ok(200);
    eventually("the key's last use", async || {
        let item = only(&org, &created["keyId"]).await;
        item["lastUsedAt"].as_str().map(str::to_owned)
    })
    .await;
}

#[tokio::test]
async fn terms_that_make_no_sense_are_refused() {
    let org = system().await.organization().await;
    let scopes = json!(["read:leads"]);
    for body in [
        json!({}),
        json!({"name": "n"}),
        json!({"scopes": scopes}),
        json!({"name": "", "scopes": scopes}),
        json!({"name": "  ", "scopes": scopes}),
        json!({"name": 7, "scopes": scopes}),
        json!({"name": null, "scopes": scopes}),
        json!({"name": "n", "scopes": []}),
        json!({"name": "n", "scopes": null}),
        json!({"name": "n", "scopes": "read:leads"}),
        json!({"name": "n", "scopes": ["read:everything"]}),
        json!({"name": "n", "scopes": ["read:leads", 7]}),
        json!({"name": "n", "scopes": [""]}),
        json!({"name": "n", "scopes": scopes, "rateLimit": 0}),
        json!({"name": "n", "scopes": scopes, "rateLimit": -1}),
        json!({"name": "n", "scopes": scopes, "rateLimit": 1.5}),
        json!({"name": "n", "scopes": scopes, "rateLimit": "5"}),
        json!({"name": "n", "scopes": scopes, "expiresAt": "tomorrow"}),
        json!({"name": "n", "scopes": scopes, "expiresAt": "1999-01-01T00:00:00Z"}),
        json!([]),
        json!("n"),
    ] {
        let answer = org.admin.post(KEYS, &body).await;
        assert_eq!(answer.status, 400, "{body}");
        assert!(!answer.error(400).is_empty());
    }
    let answer = org
        .admin
        .post_bytes(KEYS, "application/json", "{\"name\":")
        .await;
    answer.error(400);
    // Besides the caller's key there is only the one with valid terms.
    let good = org.admin.post(KEYS, &terms(&["read:leads"])).await;
    good.ok(201);
    let list = org.admin.get_at(KEYS, &good.position()).await.ok(200);
    assert_eq!(list["total"], 2);
}

#[tokio::test]
async fn a_key_gives_only_the_scopes_that_it_has() {
    let org = system().await.organization().await;
    let manager = org.client(&["keys:manage", "read:leads"]).await;
    manager.post(KEYS, &terms(&["read:leads"])).await.ok(201);
    manager
        .post(KEYS, &terms(&["keys:manage", "read:leads"]))
        .await
        .ok(201);
    for lacking in ["read:orders", "admin", "workflows:trigger"] {
        let refused = manager.post(KEYS, &terms(&["read:leads", lacking])).await;
        let message = refused.error(403);
        assert!(message.contains(lacking), "{message}");
    }
    let all = org
        .admin
        .post(KEYS, &terms(&["admin", "read:orders"]))
        .await;
    all.ok(201);
}

#[tokio::test]
async fn a_revoked_key_stops_working_everywhere_within_a_second() {
    let org = system().await.organization().await;
    let created = org.admin.post(KEYS, &terms(&["admin"])).await.ok(201);
    let client = org
        .system
        .client()
        .with_key(created["key"].as_str().unwrap());
    eventually("the key to work", async || {
        (client.get("/api/v1/workflows").await.status == 200).then_some(())
    })
    .await;
    let path = format!("{KEYS}/{}", created["keyId"].as_str().unwrap());
    let answer = org.admin.delete(&path).await;
    assert_eq!(answer.ok(204), Value::Null);
    assert!(answer.body.is_empty());
    until_refused(&client).await;
    let list = org.admin.get_at(KEYS, &answer.position()).await.ok(200);
    assert_eq!(item(&list, &created["keyId"]), None);
    org.admin.delete(&path).await.error(404);
    org.admin
        .delete(&format!("{KEYS}/nothing"))
        .await
        .error(404);
}

#[tokio::test]
async fn an_operator_revokes_a_key() {
    let org = system().await.organization().await;
    let arguments = ["key", "create", "--org", &org.id, "--name", "ops"];
    let scopes = ["--scope", "workflows:read", "--scope", "read:leads"];
    let created = org
        .system
        .waypost(&[&arguments[..], &scopes].concat())
        .await;
    let item = only(&org, &created["keyId"]).await;
    assert_eq!(item["scopes"], json!(["workflows:read", "read:leads"]));
    assert_eq!(
        (&item["rateLimit"], &item["createdBy"]),
        (&json!(1000), &json!("operator"))
    );
    let client = org
        .system
        .client()
        .with_key(created["key"].as_str().unwrap());
    let key_id = created["keyId"].as_str().unwrap();
    let arguments = ["key", "revoke", "--org", &org.id, key_id];
    let revoked = org.system.waypost(&arguments).await;
    assert_eq!(revoked, json!({"keyId": key_id}));
    until_refused(&client).await;
    let again = org.system.waypost_output(&arguments, b"").await;
    assert!(!again.status.success(), "nothing was left to revoke");
}

#[tokio::test]
async fn an_expired_key_stops_working() {
    let org = system().await.organization().await;
    let expires_at = chrono::Utc::now() + chrono::TimeDelta::milliseconds(2_500);
    let mut terms = terms(&["admin"]);
    terms["expiresAt"] = json!(expires_at.to_rfc3339());
    let created = org.admin.post(KEYS, &terms).await.ok(201);
    let client = org
        .system
        .client()
        .with_key(created["key"].as_str().unwrap());
    eventually("the key to work", async || {
        (client.get("/api/v1/workflows").await.status == 200).then_some(())
    })
    .await;
    eventually("the key to expire", async || {
        (client.get("/api/v1/workflows").await.status == 401).then_some(())
    })
    .await;
    let late = chrono::Utc::now() - expires_at;
    assert!(
        (0..=1_000).contains(&late.num_milliseconds()),
        "{late} after its end"
    );
    until_refused(&client).await;
}
