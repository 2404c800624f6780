//! `Idempotency-Key`: the same request gets the first response again.

use std::collections::HashSet;

use chrono::{TimeDelta, Utc};
use futures::future::join_all;
use harness::{Answer, Client, Organization, eventually};
use serde_json::{Value, json};

use super::{active, only_begins};
use crate::system;

async fn organization_with_trigger() -> (Organization<'static>, String) {
    let org = system().await.organization().await;
    let workflow = org.workflow(&only_begins()).await;
    (org, format!("/api/v1/workflows/{workflow}/trigger"))
}

async fn runs_of(org: &Organization<'_>, trigger: &str, position: &str) -> Value {
    let list = trigger.replace("/trigger", "/runs");
    org.admin.get_at(&list, position).await.ok(200)["total"].clone()
}

#[tokio::test]
async fn a_trigger_sent_again_is_the_same_run() {
    let (org, path) = organization_with_trigger().await;
    let body = json!({"lead": 7});
    let first = org.admin.post_once(&path, "order-1", &body).await;
    let second = org.admin.post_once(&path, "order-1", &body).await;
    assert_eq!(first.ok(202), second.ok(202));
    let other = org.admin.post_once(&path, "order-2", &body).await;
    assert_ne!(first.ok(202), other.ok(202));
    let runs = runs_of(&org, &path, &other.position()).await;
    assert_eq!(runs, 2);
    // At its position, too, the run can be read.
    let run = format!("/api/v1/runs/{}", second.json()["runId"].as_str().unwrap());
    org.admin.get_at(&run, &second.position()).await.ok(200);
}

#[tokio::test]
async fn twenty_at_once_over_two_instances_are_one_run() {
    let (org, path) = organization_with_trigger().await;
    let (second, _program) = org.system.another("command-api").await;
    let second = org.admin.at(&second);
    let body = json!({"lead": 7});
    for key in ["a", "b", "c"] {
        let sends = (0..20).map(|nth| {
            let client: &Client = if nth % 2 == 0 { &org.admin } else { &second };
            client.post_once(&path, key, &body)
        });
        let answers = join_all(sends).await;
        let runs: HashSet<_> = answers
            .iter()
            .map(|answer| answer.ok(202)["runId"].to_string())
            .collect();
        assert_eq!(runs.len(), 1, "{runs:?}");
    }
    let marker = org.admin.post_once(&path, "d", &body).await;
    assert_eq!(runs_of(&org, &path, &marker.position()).await, 4);
}

#[tokio::test]
async fn another_trigger_under_the_same_key_is_refused() {
    let (org, path) = organization_with_trigger().await;
    org.admin
        .post_once(&path, "k", &json!({"lead": 7}))
        .await
        .ok(202);
    let other = org.admin.post_once(&path, "k", &json!({"lead": 8})).await;
    assert!(other.error(400).contains("Idempotency-Key"));
    let none = org.admin.request(reqwest::Method::POST, &path);
    Answer::to(none.header("idempotency-key", "k"))
        .await
        .error(400);
    let elsewhere = org.workflow(&only_begins()).await;
    let elsewhere = format!("/api/v1/workflows/{elsewhere}/trigger");
    let other = org
        .admin
        .post_once(&elsewhere, "k", &json!({"lead": 7}))
        .await;
    other.error(400);
}

#[tokio::test]
async fn a_repeat_gets_the_first_answer_whatever_became_of_the_workflow() {
    let (org, path) = organization_with_trigger().await;
    let first = org.admin.post_once(&path, "k", &json!({})).await.ok(202);
    let mut archived = only_begins();
    archived["status"] = json!("ARCHIVED");
    let workflow = path.trim_end_matches("/trigger");
    org.admin.put(workflow, &archived).await.ok(200);
    org.admin.post(&path, &json!({})).await.error(409);
    let again = org.admin.post_once(&path, "k", &json!({})).await.ok(202);
    assert_eq!(first, again);
}

#[tokio::test]
async fn a_refused_request_leaves_its_key_unused() {
    let (org, path) = organization_with_trigger().await;
    let bad = org.admin.post_once(&path, "k", &json!([])).await;
    bad.error(400);
    org.admin.post_once(&path, "k", &json!({})).await.ok(202);
}

#[tokio::test]
async fn organizations_do_not_meet_in_a_key() {
    let (org, path) = organization_with_trigger().await;
    let (other, other_path) = organization_with_trigger().await;
    let body = json!({"lead": 7});
    let first = org.admin.post_once(&path, "k", &body).await.ok(202);
    let second = other.admin.post_once(&other_path, "k", &body).await.ok(202);
    assert_ne!(first, second);
    let contacts = "/api/v1/records/contacts";
    let contact = json!({"email": "a@b.c"});
    let first = org.admin.post_once(contacts, "c", &contact).await.ok(201);
    let second = other.admin.post_once(contacts, "c", &contact).await.ok(201);
    assert_ne!(first["id"], second["id"]);
}

#[tokio::test]
async fn a_key_that_is_none_is_refused() {
    let (org, path) = organization_with_trigger().await;
    for key in ["", " ", &"k".repeat(300)] {
        let answer = org.admin.post_once(&path, key, &json!({})).await;
        assert!(answer.error(400).contains("Idempotency-Key"));
    }
}

/// Sends the same creation six times, five of them at once, and returns what was created.
async fn created_once(org: &Organization<'_>, path: &str, body: &Value, other: &Value) -> Value {
    let first = org.admin.post_once(path, "k", body).await;
    let again = join_all((0..5).map(|_| org.admin.post_once(path, "k", body))).await;
    for answer in &again {
        assert_eq!(answer.ok(201), first.ok(201));
        assert!(!answer.position().is_empty());
    }
    let refused = org.admin.post_once(path, "k", other).await.error(409);
    assert!(refused.contains("Idempotency-Key"), "{refused}");
    let second = org.admin.post_once(path, "k2", other).await.ok(201);
    assert_ne!(second, first.json());
    first.json()
}

#[tokio::test]
async fn a_record_sent_again_is_the_same_record() {
    let org = system().await.organization().await;
    let path = "/api/v1/records/contacts";
    let (one, other) = (json!({"email": "a@b.c"}), json!({"email": "d@e.f"}));
    created_once(&org, path, &one, &other).await;
    // With the caller's own id a repeat is not a conflict either.
    let named = json!({"id": "mine", "email": "a@b.c"});
    let first = org.admin.post_once(path, "n", &named).await.ok(201);
    let again = org.admin.post_once(path, "n", &named).await.ok(201);
    assert_eq!(first, again);
    org.admin.post(path, &named).await.error(409);
    org.admin.post_once(path, "m", &named).await.error(409);
}

#[tokio::test]
async fn a_webhook_sent_again_is_the_same_webhook_with_the_same_secret() {
    let org = system().await.organization().await;
    let one = json!({"url": "https://example.com/a", "events": ["run.*"]});
    let other = json!({"url": "https://example.com/b"});
    let first = created_once(&org, "/api/v1/webhooks", &one, &other).await;
    assert!(first["secret"].as_str().unwrap().starts_with("whsec_"));
    let list = org
        .until("/api/v1/webhooks", |list| list["total"] == 2)
        .await;
    assert_eq!(list["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_key_sent_again_is_the_same_key() {
    let org = system().await.organization().await;
    let one = json!({"name": "a", "scopes": ["read:leads"]});
    let other = json!({"name": "b", "scopes": ["read:leads"]});
    created_once(&org, "/api/v1/keys", &one, &other).await;
    let list = org.until("/api/v1/keys", |list| list["total"] == 3).await;
    assert_eq!(list["data"].as_array().unwrap().len(), 3, "admin, a and b");
}

#[tokio::test]
async fn a_run_called_off_again_is_called_off_once() {
    let org = system().await.organization().await;
    let patient = json!({"maxAttempts": 9, "initialSeconds": 3600, "maxSeconds": 3600});
    let workflow = org
        .workflow(&active(&json!([
            {"id": "start", "type": "TRIGGER", "next": ["call"]},
            {"id": "call", "type": "HTTP", "url": "http://127.0.0.1:1/", "retry": patient},
        ])))
        .await;
    let run_id = org.trigger(&workflow, &json!({})).await;
    let cancel = format!("/api/v1/runs/{run_id}/cancel");
    for _ in 0..3 {
        org.admin.post_once(&cancel, "k", &json!({})).await.ok(202);
    }
    assert_eq!(org.ended(&run_id).await["state"], "CANCELLED");
}

#[tokio::test]
async fn a_repeat_of_what_changed_nothing_changes_nothing_later_either() {
    let (ada, bob) = (
        system().await.person("Ada").await,
        system().await.person("Bob").await,
    );
    bob.joins(&ada.makes_circle().await, &ada).await;
    let (hide, show) = ("/location/pause", "/location/resume");
    let until = json!({"until": (Utc::now() + TimeDelta::hours(1)).to_rfc3339()});
    let shown = bob.client.post_once(show, "k", &json!({})).await;
    shown.ok(204);
    bob.client.post(hide, &until).await.ok(204);
    // It reaches the server late.
    let again = bob.client.post_once(show, "k", &json!({})).await;
    again.ok(204);
    assert_eq!(again.position(), shown.position());
    let other = json!({"other": 1});
    bob.client.post_once(show, "k", &other).await.error(409);
    assert_eq!(ada.sees_at(&bob.is_at(1.0, 2.0).await).await, []);
}

#[tokio::test]
async fn lines_sent_again_are_answered_again() {
    let org = system().await.organization().await;
    let path = "/api/v1/records/contacts";
    let lines = "{\"email\":\"a@b.c\"}\n{\"id\":\"two\",\"email\":\"d@e.f\"}\n{\"id\":7}\n";
    let send = async || {
        let request = org.admin.request(reqwest::Method::POST, path);
        let request = request
            .header("content-type", "application/x-ndjson")
            .header("idempotency-key", "k")
            .body(lines);
        Answer::to(request).await
    };
    let (first, again) = (send().await, send().await);
    assert_eq!((first.status.as_u16(), again.status.as_u16()), (200, 200));
    assert_eq!(first.text(), again.text());
}

#[tokio::test]
async fn what_had_a_time_to_come_is_answered_as_at_first_once_it_has_passed() {
    let org = system().await.organization().await;
    let end = Utc::now() + TimeDelta::seconds(2);
    let soon = end.to_rfc3339();
    let body = json!({"name": "short", "scopes": ["read:leads"], "expiresAt": soon});
    let path = "/api/v1/keys";
    let first = org.admin.post_once(path, "k", &body).await.ok(201);
    let ada = system().await.person("Ada").await;
    let (hide, until) = ("/location/pause", json!({"until": soon}));
    ada.client.post_once(hide, "p", &until).await.ok(204);
    eventually("the time to pass", async || {
        (Utc::now() > end).then_some(())
    })
    .await;
    ada.client.post(hide, &until).await.error(400);
    org.admin.post(path, &body).await.error(400);
    assert_eq!(org.admin.post_once(path, "k", &body).await.ok(201), first);
    ada.client.post_once(hide, "p", &until).await.ok(204);
    // Without a first answer there is none to repeat.
    org.admin.post_once(path, "other", &body).await.error(400);
    ada.client.post_once(hide, "other", &until).await.error(400);
}
