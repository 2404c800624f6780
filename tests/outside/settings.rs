//! Settings stored in files.

use harness::System;
use local_servers::TemporaryHome;
use serde_json::json;

use crate::SHAPE;

#[tokio::test]
async fn the_value_of_a_variable_may_be_given_in_a_file() {
    let folder = TemporaryHome::new().expect("a folder");
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let requests = file("requests", "7\n");
    let key = file("key", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n");
    let system = System::start(
        SHAPE,
        &[
            ("WAYPOST_LIMIT_MINUTE_REQUESTS_FILE", requests.as_str()),
            ("WAYPOST_MASTER_KEY_FILE", key.as_str()),
            ("WAYPOST_TOKEN_KEY_FILE", key.as_str()),
        ],
    )
    .await;
    let org = system.organization().await;
    let terms = json!({"name": "n", "scopes": ["read:orders"]});
    let (client, _) = org.unused_key(&terms).await;
    let answer = client.get("/api/v1/orders").await;
    answer.ok(200);
    let policy = answer.header("ratelimit-policy");
    assert_eq!(policy, Some("\"minute\";q=7;w=60"));
    // If a key is given, none is created.
    assert!(!system.home().join("secrets").join("master.key").exists());
}

#[tokio::test]
async fn a_command_finds_the_log_that_a_file_names() {
    let system = crate::system().await;
    let home = TemporaryHome::new().expect("a folder");
    let url = home.path().join("nats-url");
    std::fs::write(&url, system.setting("NATS_URL").unwrap()).unwrap();
    let started = tokio::process::Command::new(harness::programs().join("waypost"))
        .args(["org", "create", "--name", "Named by a file"])
        .env_remove("NATS_URL")
        .env("NATS_URL_FILE", &url)
        .env("WAYPOST_HOME", home.path())
        .env(
            "WAYPOST_MASTER_KEY_FILE",
            system.home().join("secrets/master.key"),
        )
        .env(
            "WAYPOST_LOG_PREFIX",
            system.setting("WAYPOST_LOG_PREFIX").unwrap(),
        )
        .output();
    let output = started.await.expect("waypost ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[tokio::test]
async fn a_file_that_is_not_there_ends_the_program_with_its_name() {
    let system = crate::system().await;
    let home = TemporaryHome::new().expect("a folder");
    let started = tokio::process::Command::new(harness::programs().join("waypost"))
        .args(["org", "create", "--name", "Never made"])
        .env("NATS_URL", system.setting("NATS_URL").unwrap())
        .env("WAYPOST_HOME", home.path())
        .env("WAYPOST_MASTER_KEY_FILE", "/no/such/key")
        .output();
    let output = started.await.expect("waypost ends");
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("/no/such/key"), "{said}");
}
