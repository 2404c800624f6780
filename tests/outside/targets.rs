//! Private addresses, if the operator does not allow them.

use axum::http::{HeaderMap, StatusCode};
use harness::{Organization, Receiver, System};
use serde_json::{Value, json};

use super::{active, only_begins};
use crate::SHAPE;

/// Private addresses in every notation.
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

/// Clouds' metadata services and link-local addresses in every notation.
const ALWAYS_SHUT: &[&str] = &[
    "http://169.254.169.254/latest/meta-data/",
    "http://169.254.43518/",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::169.254.169.254]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[64:ff9b:1::a9fe:a9fe]/",
    "http://[2002:a9fe:a9fe::]/",
    "http://[2001:0:a9fe:a9fe::]/",
    "http://[2a00::5efe:a9fe:a9fe]/",
    "http://[fe80::a9fe:a9fe]/",
    "http://[fe80::1%25eth0]/",
    "http://[fd00:ec2::254]/",
    "http://[fd20:ce::254]/",
    "http://100.100.100.200/",
    "http://168.63.129.16/",
    "http://0.0.0.0/",
    "http://255.255.255.255/",
];

/// Settings under which metadata services must stay blocked, from nothing to everything allowed.
const RANGES: &[&str] = &["0", "1", "0.0.0.0/0,::/0"];

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

    // An HTTP step's address may be known only during the run: it is checked when connecting.
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
    // A name is checked by its addresses: this machine's own are private as well.
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

#[tokio::test]
async fn metadata_services_stay_shut_whatever_is_opened() {
    for ranges in RANGES {
        let settings = [("WAYPOST_ALLOW_PRIVATE_TARGETS", *ranges)];
        let system = System::start(SHAPE, &settings).await;
        let org = system.organization().await;
        for url in ALWAYS_SHUT {
            let hook = json!({"url": url});
            let answer = org.admin.post("/api/v1/webhooks", &hook).await;
            assert_eq!(answer.status, 400, "{url} was taken with {ranges}");
            answer.error(400);
        }
    }
}

#[tokio::test]
async fn only_the_ranges_that_are_named_are_open() {
    let settings = [("WAYPOST_ALLOW_PRIVATE_TARGETS", "127.0.0.2/32, fd12::/48")];
    let system = System::start(SHAPE, &settings).await;
    let org = system.organization().await;
    for (url, status) in [
        ("http://127.0.0.2/", 201),
        ("http://[fd12::1]/", 201),
        ("http://127.0.0.1/", 400),
        ("http://[fd13::1]/", 400),
        ("http://10.0.0.1/", 400),
        ("http://localhost/", 400),
    ] {
        let hook = json!({"url": url, "events": ["sos.resolved"]});
        let answer = org.admin.post("/api/v1/webhooks", &hook).await;
        assert_eq!(answer.status, status, "{url}");
    }
    let receiver = Receiver::start_at("0.0.0.0:0").await;
    receiver.reply(|_| (StatusCode::OK, HeaderMap::new(), String::new()));
    let port = receiver.url("/").rsplit_once(':').unwrap().1.to_owned();
    for (host, state) in [("127.0.0.2", "SUCCEEDED"), ("127.0.0.3", "FAILED")] {
        let run = call(&org, &format!("http://{host}:{port}"), &json!({})).await;
        assert_eq!(run["state"], state, "{host}");
    }
    assert_eq!(receiver.received().len(), 1);
}

#[tokio::test]
async fn the_own_database_and_log_are_not_called_even_where_this_machine_is_open() {
    let system = System::start(SHAPE, &[("WAYPOST_ALLOW_PRIVATE_TARGETS", "1")]).await;
    let org = system.organization().await;
    for server in ["NATS_URL", "DATABASE_URL"] {
        let address = system.setting(server).unwrap();
        let address = address.rsplit_once('@').unwrap().1;
        let address = address.split('/').next().unwrap();
        let run = call(&org, &format!("http://{address}/"), &json!({})).await;
        assert_eq!(run["state"], "FAILED", "{address}");
        let error = run["error"].as_str().unwrap();
        assert!(error.contains("not on the public internet"), "{error}");
    }
}

#[tokio::test]
async fn what_names_no_range_ends_the_program_with_what_to_write() {
    for (named, why) in [
        ("maybe", "write ranges such as"),
        ("10.0.0.0", "write ranges such as"),
        ("10.0.0.1/8", "after the prefix"),
        ("169.254.169.254/32", "always refused"),
    ] {
        for program in ["waypost", "command-api", "workflow-runner"] {
            let mut command = tokio::process::Command::new(harness::programs().join(program));
            if program == "waypost" {
                command.arg("up");
            }
            let ended = command.env("WAYPOST_ALLOW_PRIVATE_TARGETS", named).output();
            let output = ended.await.expect("it ends");
            assert!(!output.status.success(), "{program} took {named}");
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(said.contains(why), "{program}: {said}");
        }
    }
}
