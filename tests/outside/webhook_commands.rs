//! `/api/v1/webhooks/{id}/…`: rotating the secret, testing, and who may request what.

use axum::http::HeaderMap;
use harness::{Organization, Received, Receiver, System};
use serde_json::{Value, json};
use standardwebhooks::Webhook;

use super::deliveries::{delivery, path, run, webhook};
use crate::{SHAPE, system};

const REPLAY: &str = "replay";
const ROTATE: &str = "rotate-secret";
const TEST: &str = "test";

async fn rotated(org: &Organization<'_>, hook: &Value) -> String {
    let path = format!("{}/{ROTATE}", path(hook));
    let answer = org.admin.post_nothing(&path).await;
    let secret = answer.ok(200)["secret"].as_str().unwrap().to_owned();
    assert!(secret.starts_with("whsec_"));
    assert!(!answer.position().is_empty());
    secret
}

fn signatures(received: &Received) -> Vec<String> {
    let signatures = received.header("webhook-signature").split(' ');
    signatures.map(str::to_owned).collect()
}

/// Whether this signature alone verifies with this secret.
fn satisfies(received: &Received, signature: &str, secret: &str) -> bool {
    let mut headers = HeaderMap::clone(&received.headers);
    headers.insert("webhook-signature", signature.parse().unwrap());
    let endpoint = Webhook::new(secret).unwrap();
    endpoint.verify(&received.body, &headers).is_ok()
}

#[tokio::test]
async fn a_new_secret_signs_at_once_and_the_old_one_along() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    let hook = webhook(&org, &receiver.url("/"), &["run.succeeded"]).await;
    let old = hook["secret"].as_str().unwrap().to_owned();
    let new = rotated(&org, &hook).await;
    assert_ne!(new, old);
    run(&org).await;
    let arrived = receiver.wait_for(1, |_| true).await.remove(0);
    for secret in [&new, &old] {
        let endpoint = Webhook::new(secret).unwrap();
        let judged = endpoint.verify(&arrived.body, &arrived.headers);
        judged.expect("a signature under each secret");
    }
    let signed = signatures(&arrived);
    assert_eq!(signed.len(), 2, "{signed:?}");
    assert!(satisfies(&arrived, &signed[0], &new), "the newest is first");
    assert!(satisfies(&arrived, &signed[1], &old));

    let newest = rotated(&org, &hook).await;
    run(&org).await;
    let arrived = receiver.wait_for(2, |_| true).await.remove(1);
    let signed = signatures(&arrived);
    for (nth, secret) in [&newest, &new, &old].into_iter().enumerate() {
        assert!(satisfies(&arrived, &signed[nth], secret), "{nth}");
    }

    let read = org.admin.get(&path(&hook)).await;
    assert!(!read.text().contains("whsec_"), "{}", read.text());
    let told = "/api/v1/events?types=webhook.*";
    let told = org.admin.get(told).await.text();
    let types: Vec<String> = told
        .lines()
        .map(|line| {
            let event: Value = serde_json::from_str(line).unwrap();
            assert_eq!(event["data"]["id"], hook["id"]);
            assert!(event["data"].get("secret").is_none(), "{event}");
            event["type"].as_str().unwrap().to_owned()
        })
        .collect();
    let rotated = "webhook.secret_rotated";
    assert_eq!(types, ["webhook.created", rotated, rotated]);
    assert!(!told.contains("whsec_"));
}

#[tokio::test]
async fn an_old_secret_signs_no_longer_than_it_may() {
    let settings = [("WAYPOST_WEBHOOK_OLD_SECRET_SECONDS", "0")];
    let system = System::start(SHAPE, &settings).await;
    let org = system.organization().await;
    let receiver = Receiver::start().await;
    let hook = webhook(&org, &receiver.url("/"), &["run.succeeded"]).await;
    let new = rotated(&org, &hook).await;
    run(&org).await;
    let arrived = receiver.wait_for(1, |_| true).await.remove(0);
    let signed = signatures(&arrived);
    assert_eq!(signed.len(), 1, "{signed:?}");
    assert!(satisfies(&arrived, &signed[0], &new));
}

#[tokio::test]
async fn a_test_goes_to_its_endpoint_alone_whatever_that_subscribes_to() {
    let org = system().await.organization().await;
    let (tried, other) = (Receiver::start().await, Receiver::start().await);
    let hook = webhook(&org, &tried.url("/"), &["sos.triggered"]).await;
    let all = json!({"url": other.url("/")});
    org.admin.post("/api/v1/webhooks", &all).await.ok(201);
    let test = format!("{}/{TEST}", path(&hook));
    let asked = org.admin.post_nothing(&test).await;
    let id = asked.ok(202)["deliveryId"].as_str().unwrap().to_owned();
    let arrived = tried.wait_for(1, |_| true).await.remove(0);
    assert_eq!(arrived.header("webhook-id"), id);
    let endpoint = Webhook::new(hook["secret"].as_str().unwrap()).unwrap();
    let judged = endpoint.verify(&arrived.body, &arrived.headers);
    judged.expect("a valid signature");
    let body = arrived.json();
    assert_eq!(body["type"], "webhook.test");
    assert_eq!(body["data"], json!({"id": hook["id"]}));
    assert_eq!(body["position"], asked.position());
    let delivery = delivery(&org, &hook, "SUCCEEDED").await;
    assert_eq!(
        (&delivery["id"], &delivery["type"]),
        (&json!(id), &body["type"])
    );
    assert_eq!(delivery["attempts"].as_array().unwrap().len(), 1);

    // The next event in the log arrives at the other, which has received nothing of it.
    run(&org).await;
    other
        .wait_for(1, |r| r.json()["type"] == "run.succeeded")
        .await;
    let of_tests = |r: &Received| {
        r.json()["type"]
            .as_str()
            .unwrap()
            .starts_with("webhook.test")
    };
    assert!(!other.received().iter().any(of_tests));
    assert_eq!(tried.received().len(), 1);
}

#[tokio::test]
async fn a_test_that_fails_is_tried_again_as_any_delivery() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    receiver.status(500);
    let hook = webhook(&org, &receiver.url("/"), &["run.succeeded"]).await;
    let test = format!("{}/{TEST}", path(&hook));
    org.admin.post_nothing(&test).await.ok(202);
    let delivery = delivery(&org, &hook, "FAILED").await;
    assert_eq!(delivery["attempts"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    let hook = webhook(&org, &receiver.url("/"), &["run.succeeded"]).await;
    let other = webhook(&org, &receiver.url("/other"), &["run.succeeded"]).await;
    run(&org).await;
    let of_other = delivery(&org, &other, "SUCCEEDED").await;
    let replay = format!("{}/{REPLAY}", path(&hook));
    for (given, named) in [
        (json!({}), "deliveryId"),
        (json!({"deliveryId": null}), "deliveryId"),
        (json!({"deliveryId": "msg_1", "failed": true}), "failed"),
        (json!({"after": "x", "failed": true}), "failed"),
        (json!({"deliveryId": 7}), "deliveryId"),
        (json!({"after": 7}), "after"),
        (json!({"after": "nonsense"}), "after"),
        (json!({"after": "e00000000-1"}), "after"),
        (json!({"failed": false}), "failed"),
        (json!({"failed": "true"}), "failed"),
        (json!({"failed": true, "since": 1}), "since"),
        (json!([]), "body"),
    ] {
        let answer = org.admin.post(&replay, &given).await;
        let message = answer.error(400);
        assert!(message.contains(named), "{given}: {message}");
    }
    let no_json = org.admin.post_bytes(&replay, "application/json", "{").await;
    no_json.error(400);
    let untyped = org.admin.post_bytes(&replay, "text/plain", "{}").await;
    untyped.error(415);
    for unknown in [json!("msg_nothing"), json!(""), of_other["id"].clone()] {
        let unknown = json!({"deliveryId": unknown});
        let message = org.admin.post(&replay, &unknown).await.error(404);
        assert!(message.contains("delivery"), "{unknown}: {message}");
    }
    let nothing = "/api/v1/webhooks/nothing";
    let failed = json!({"failed": true});
    for command in [REPLAY, ROTATE, TEST] {
        let path = format!("{nothing}/{command}");
        org.admin.post(&path, &failed).await.error(404);
        // A wrong method is reported before the missing endpoint.
        org.admin.get(&path).await.error(405);
    }
    org.admin.delete(&path(&other)).await.ok(204);
    for command in [REPLAY, ROTATE, TEST] {
        let path = format!("{}/{command}", path(&other));
        org.admin.post(&path, &failed).await.error(404);
    }
}

#[tokio::test]
async fn a_disabled_endpoint_gets_another_secret_but_nothing_sent() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    let hook = webhook(&org, &receiver.url("/"), &["run.succeeded"]).await;
    run(&org).await;
    let sent = delivery(&org, &hook, "SUCCEEDED").await;
    let (off, on) = (json!({"status": "DISABLED"}), json!({"status": "ENABLED"}));
    org.admin.patch(&path(&hook), &off).await.ok(200);
    let of = |command| format!("{}/{command}", path(&hook));
    for (command, given) in [
        (REPLAY, json!({"failed": true})),
        (REPLAY, json!({"deliveryId": sent["id"]})),
        (TEST, json!({})),
    ] {
        let message = org.admin.post(&of(command), &given).await.error(409);
        assert!(message.contains("ENABLED"), "{command}: {message}");
    }
    rotated(&org, &hook).await;
    org.admin.patch(&path(&hook), &on).await.ok(200);
    org.admin.post_nothing(&of(TEST)).await.ok(202);
    let arrived = receiver.wait_for(2, |_| true).await.remove(1);
    assert_eq!(arrived.json()["type"], "webhook.test");
    assert_eq!(signatures(&arrived).len(), 2);
}

#[tokio::test]
async fn the_same_request_again_gets_the_first_answer() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    let hook = webhook(&org, &receiver.url("/"), &["run.succeeded"]).await;
    let sent = run(&org).await;
    receiver.wait_for(1, |_| true).await;
    let first = delivery(&org, &hook, "SUCCEEDED").await;
    let replay = json!({"deliveryId": first["id"]});
    for (command, status, body) in [
        (TEST, 202, json!({})),
        (ROTATE, 200, json!({})),
        (REPLAY, 202, replay),
    ] {
        let path = format!("{}/{command}", path(&hook));
        let key = format!("{sent}-{command}");
        let answer = org.admin.post_once(&path, &key, &body).await;
        let again = org.admin.post_once(&path, &key, &body).await;
        assert_eq!(answer.ok(status), again.ok(status), "{command}");
        assert_eq!(answer.position(), again.position(), "{command}");
        let other = json!({"failed": true});
        org.admin.post_once(&path, &key, &other).await.error(409);
        let anew = org.admin.post_once(&path, &format!("{key}2"), &body).await;
        assert_ne!(answer.position(), anew.position(), "{command}");
    }
    // Two tests and two replays besides the first delivery; their repeats sent nothing.
    let list = format!("{}/deliveries", path(&hook));
    let settled = |list: &Value| {
        let all = list["data"].as_array().unwrap();
        let replayed = all.iter().find(|one| one["id"] == first["id"]).unwrap();
        let ended = all.iter().all(|one| one["status"] == "SUCCEEDED");
        all.len() == 3 && ended && replayed["attempts"].as_array().unwrap().len() >= 2
    };
    org.until(&list, settled).await;
    let ids = |r: &Received| r.header("webhook-id") == first["id"].as_str().unwrap();
    let sent = receiver.received();
    assert!((2..=3).contains(&sent.iter().filter(|r| ids(r)).count()));
    assert_eq!(sent.iter().filter(|r| !ids(r)).count(), 2);
}

#[tokio::test]
async fn what_is_anothers_is_not_found_and_takes_the_scope() {
    let system = system().await;
    let (org, other) = (system.organization().await, system.organization().await);
    let receiver = Receiver::start().await;
    let hook = webhook(&org, &receiver.url("/"), &["run.succeeded"]).await;
    run(&org).await;
    let sent = delivery(&org, &hook, "SUCCEEDED").await;
    let theirs = webhook(&other, &receiver.url("/"), &["run.succeeded"]).await;
    let narrow = org.client(&["events:read"]).await;
    for (command, given) in [
        (REPLAY, json!({"failed": true})),
        (ROTATE, json!({})),
        (TEST, json!({})),
    ] {
        let path = format!("{}/{command}", path(&hook));
        other.admin.post(&path, &given).await.error(404);
        let message = narrow.post(&path, &given).await.error(403);
        assert!(message.contains("webhooks:manage"), "{message}");
        system.client().post(&path, &given).await.error(401);
    }
    let by_id = json!({"deliveryId": sent["id"]});
    let replay = format!("{}/{REPLAY}", path(&theirs));
    other.admin.post(&replay, &by_id).await.error(404);
    assert_eq!(receiver.received().len(), 1);
}
