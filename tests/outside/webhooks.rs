//! `/api/v1/webhooks`: created, read, changed, deleted.

use base64::Engine as _;
use serde_json::{Value, json};

use crate::system;

const WEBHOOKS: &str = "/api/v1/webhooks";

fn path(webhook: &Value) -> String {
    format!("{WEBHOOKS}/{}", webhook["id"].as_str().unwrap())
}

#[tokio::test]
async fn a_webhook_is_made_and_its_secret_shown_once() {
    let org = system().await.organization().await;
    let given = json!({
        "url": "https://example.com/hook?x=ä", "events": ["run.*", "contact.created", "custom.*"],
        "description": "Für das CRM",
    });
    let answer = org.admin.post(WEBHOOKS, &given).await;
    let made = answer.ok(201);
    let mut fields: Vec<_> = made.as_object().unwrap().keys().collect();
    fields.sort();
    let promised = ["createdAt", "events", "id", "secret", "status", "url"];
    assert!(
        promised.iter().all(|name| made.get(name).is_some()),
        "{fields:?}"
    );
    assert_eq!(
        (&made["url"], &made["events"]),
        (&given["url"], &given["events"])
    );
    assert_eq!(made["status"], "ENABLED");
    let secret = made["secret"].as_str().unwrap();
    let bytes = secret.strip_prefix("whsec_").expect("whsec_");
    let engine = base64::engine::general_purpose::STANDARD;
    let bytes = engine.decode(bytes).expect("base64");
    assert!((24..=64).contains(&bytes.len()), "{} bytes", bytes.len());

    let position = answer.position();
    let one = org.admin.get_at(&path(&made), &position).await;
    let list = org.admin.get_at(WEBHOOKS, &position).await;
    for read in [&one, &list] {
        read.ok(200);
        assert!(!read.text().contains(secret), "{}", read.text());
        assert!(!read.text().contains("whsec_"));
    }
    let (one, list) = (one.json(), list.json());
    assert_eq!(
        (&list["total"], &list["data"][0]["id"]),
        (&json!(1), &made["id"])
    );
    for field in ["id", "url", "events", "status"] {
        assert_eq!(one[field], made[field], "{field}");
    }
    assert_eq!(one["description"], "Für das CRM");
    let other = org.admin.post(WEBHOOKS, &given).await.ok(201);
    assert_ne!(other["secret"], made["secret"]);
}

#[tokio::test]
async fn without_events_a_webhook_gets_all() {
    let org = system().await.organization().await;
    for given in [
        json!({"url": "https://example.com"}),
        json!({"url": "https://example.com", "events": null}),
    ] {
        let made = org.admin.post(WEBHOOKS, &given).await.ok(201);
        let events = made["events"].as_array().unwrap();
        assert!(events.is_empty() || *events == [json!("*")], "{events:?}");
    }
}

#[tokio::test]
async fn a_webhook_that_makes_no_sense_is_refused() {
    let org = system().await.organization().await;
    let url = "https://example.com/";
    let long = format!("{url}{}", "x".repeat(3_000));
    for (given, named) in [
        (json!({}), "url"),
        (json!({"url": null}), "url"),
        (json!({"url": 7}), "url"),
        (json!({"url": ""}), "url"),
        (json!({"url": "example.com"}), "url"),
        (json!({"url": "/hook"}), "url"),
        (json!({"url": "ftp://example.com"}), "url"),
        (json!({"url": "file:///etc/passwd"}), "url"),
        (json!({"url": "https://"}), "url"),
        (json!({"url": "https://user:pass@example.com"}), "url"),
        (json!({"url": long}), "url"),
        (json!({"url": url, "events": "run.*"}), "events"),
        (json!({"url": url, "events": [7]}), "events"),
        (json!({"url": url, "events": ["run.strated"]}), "events"),
        (json!({"url": url, "events": [""]}), "events"),
        (json!({"url": url, "events": ["*.started"]}), "events"),
        (json!({"url": url, "description": 7}), "description"),
        (json!([]), ""),
    ] {
        let answer = org.admin.post(WEBHOOKS, &given).await;
        assert_eq!(answer.status, 400, "{given}");
        let message = answer.error(400);
        assert!(message.contains(named), "{given}: {message}");
    }
    assert_eq!(org.admin.get(WEBHOOKS).await.ok(200)["total"], 0);
}

#[tokio::test]
async fn a_webhook_is_changed_field_by_field() {
    let org = system().await.organization().await;
    let given = json!({"url": "https://example.com/a", "events": ["run.*"]});
    let made = org.admin.post(WEBHOOKS, &given).await.ok(201);
    let path = path(&made);
    for (change, field, value) in [
        (json!({"status": "DISABLED"}), "status", json!("DISABLED")),
        (json!({"status": "ENABLED"}), "status", json!("ENABLED")),
        (
            json!({"events": ["run.failed"]}),
            "events",
            json!(["run.failed"]),
        ),
        (
            json!({"url": "https://example.com/b"}),
            "url",
            json!("https://example.com/b"),
        ),
        (json!({}), "url", json!("https://example.com/b")),
    ] {
        let answer = org.admin.patch(&path, &change).await;
        let changed = answer.ok(200);
        assert_eq!(changed[field], value, "{change}");
        assert!(!answer.text().contains("whsec_"));
        let read = org.admin.get_at(&path, &answer.position()).await.ok(200);
        assert_eq!(read[field], value, "{change}");
        assert_eq!(read["createdAt"], changed["createdAt"]);
    }
    for change in [
        json!({"status": "BROKEN"}),
        json!({"status": 7}),
        json!({"url": "nowhere"}),
        json!({"events": ["run.strated"]}),
        json!([]),
    ] {
        let answer = org.admin.patch(&path, &change).await;
        assert_eq!(answer.status, 400, "{change}");
        answer.error(400);
    }
    let read = org.admin.get(&path).await.ok(200);
    assert_eq!(read["events"], json!(["run.failed"]));
}

#[tokio::test]
async fn a_deleted_webhook_is_gone() {
    let org = system().await.organization().await;
    let given = json!({"url": "https://example.com/a"});
    let made = org.admin.post(WEBHOOKS, &given).await.ok(201);
    let path = path(&made);
    let deleted = org.admin.delete(&path).await;
    deleted.ok(204);
    let position = deleted.position();
    org.admin.get_at(&path, &position).await.error(404);
    let list = org.admin.get_at(WEBHOOKS, &position).await.ok(200);
    assert_eq!(list["total"], 0);
    org.admin.delete(&path).await.error(404);
    let change = json!({"status": "ENABLED"});
    org.admin.patch(&path, &change).await.error(404);
    org.admin
        .get(&format!("{path}/deliveries"))
        .await
        .error(404);
    let nothing = format!("{WEBHOOKS}/nothing");
    org.admin.get(&nothing).await.error(404);
    org.admin.delete(&nothing).await.error(404);
}
