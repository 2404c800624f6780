//! Private addresses, where the operator does not allow them.

use axum::http::{HeaderMap, StatusCode};
use harness::{Organization, Receiver, System};
use serde_json::{Value, json};

use super::{active, only_begins};
use crate::SHAPE;

/// Private addresses in every spelling.
const PRIVATE: &[&str] = &[
    "http://127.0.0.1/",
    "http://127.1/",
    "http://0177.0.0.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0/",
    "http://0.0.0.0/",
    "http://localhost/",
    "http://LOCALHOST./",
    "http://hooks.localhost/",
    "http://[::1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[fd00::1]/",
    "http://[fe80::1]/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://100.64.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://198.18.0.1/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
];

async fn call(org: &Organization<'_>, url: &str, trigger: &Value) -> Value {
    let workflow = active(&json!([
        {"id": "start", "type": "TRIGGER", "next": ["call"]},
        {"id": "call", "type": "HTTP", "url": url, "timeoutSeconds": 5,
         "retry": {"maxAttempts": 1}},
    ]));
    let workflow = org.workflow(&workflow).await;
    let run_id = org.trigger(&workflow, trigger).await;
    org.ended(&run_id).await
}

#[tokio::test]
async fn private_targets_are_refused_in_every_spelling() {
    let settings = [("WAYPOST_ALLOW_PRIVATE_TARGETS", "0")];
    let system = System::start(SHAPE, &settings).await;
    let org = system.organization().await;
    for url in PRIVATE {
        let refused = json!({"url": url});
        let answer = org.admin.post("/api/v1/webhooks", &refused).await;
        assert_eq!(answer.status, 400, "{url} was taken");
        answer.error(400);
    }
    let public = json!({"url": "https://example.com/hook"});
    let hook = org.admin.post("/api/v1/webhooks", &public).await.ok(201);
    let path = format!("/api/v1/webhooks/{}", hook["id"].as_str().unwrap());
    for url in PRIVATE {
        let change = json!({"url": url});
        org.admin.patch(&path, &change).await.error(400);
    }

    // An HTTP step's address may be known only at the run: it is judged when it is dialled.
    let receiver = Receiver::start_at("0.0.0.0:0").await;
    receiver.reply(|_| (StatusCode::OK, HeaderMap::new(), String::new()));
    let port = receiver.url("/").rsplit_once(':').unwrap().1.to_owned();
    for host in [
        "127.0.0.1",
        "2130706433",
        "0177.0.0.1",
        "localhost",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
    ] {
        let trigger = json!({"host": host});
        let run = call(
            &org,
            &format!("http://{{{{ trigger.host }}}}:{port}"),
            &trigger,
        )
        .await;
        assert_eq!(run["state"], "FAILED", "{host}");
        assert!(!run["error"].as_str().unwrap().is_empty());
    }
    // A name is judged by the addresses that it has: this machine's own are private as well.
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let hook =
        json!({"url": format!("http://{}:{port}", name.trim()), "events": ["run.succeeded"]});
    let made = org.admin.post("/api/v1/webhooks", &hook).await.ok(201);
    let bare = org.workflow(&only_begins()).await;
    let run_id = org.trigger(&bare, &json!({})).await;
    assert_eq!(org.ended(&run_id).await["state"], "SUCCEEDED");
    let list = format!(
        "/api/v1/webhooks/{}/deliveries",
        made["id"].as_str().unwrap()
    );
    let given_up = |list: &Value| list["data"][0]["status"] == "FAILED";
    let list = org.until(&list, given_up).await;
    let attempt = &list["data"][0]["attempts"][0];
    assert!(
        attempt["status"].is_null() && attempt["error"].is_string(),
        "{list}"
    );
    assert_eq!(receiver.received().len(), 0, "nobody was called");
}
