//! Rotating the master key of a running system.

use std::path::Path;
use std::process::Stdio;

use axum::http::{HeaderMap, StatusCode};
use harness::{Organization, Receiver, System, programs};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use super::active;
use crate::SHAPE;

/// Long enough for every process to learn of the new key.
const ROTATE: &[&str] = &["master-key", "rotate", "--settle-seconds", "5"];

/// What a system can do only with sealed data: sign people in, sign webhooks, use secrets.
struct Sealed<'s> {
    system: &'s System,
    org: Organization<'s>,
    receiver: Receiver,
    workflow: String,
    email: String,
}

impl<'s> Sealed<'s> {
    async fn new(system: &'s System) -> Self {
        let org = system.organization().await;
        let receiver = Receiver::start().await;
        receiver.reply(|_| (StatusCode::OK, HeaderMap::new(), String::new()));
        let set = ["secret", "set", "--org", &org.id, "TOKEN"];
        system.waypost_reading(&set, b"a-secret-token").await;
        let workflow = active(&json!([
            {"id": "start", "type": "TRIGGER", "next": ["call"]},
            {"id": "call", "type": "HTTP", "method": "POST", "url": receiver.url("/"),
             "headers": {"Authorization": "Bearer {{ secrets.TOKEN }}"}},
        ]));
        let workflow = org.workflow(&workflow).await;
        let email = register(system).await;
        Self {
            system,
            org,
            receiver,
            workflow,
            email,
        }
    }

    async fn works(&self) {
        signs_in(self.system, &self.email).await;
        let before = self.receiver.received().len();
        let run = self.org.trigger(&self.workflow, &json!({})).await;
        assert_eq!(self.org.ended(&run).await["state"], "SUCCEEDED");
        let calls = self.receiver.received();
        assert_eq!(calls.len(), before + 1);
        let sent = calls[before].headers["authorization"].to_str().unwrap();
        assert_eq!(sent, "Bearer a-secret-token");
    }
}

async fn register(system: &System) -> String {
    let email = format!("{}@example.org", uuid::Uuid::new_v4());
    let person = json!({"name": "Ada", "email": email, "password": "correct horse"});
    let answer = system.client().post("/auth/register", &person).await;
    answer.ok(201);
    email
}

async fn signs_in(system: &System, email: &str) {
    let person = json!({"email": email, "password": "correct horse"});
    let answer = system.client().post("/auth/login", &person).await;
    assert_eq!(answer.ok(200)["user"]["email"], email);
}

fn key(home: &Path, name: &str) -> String {
    std::fs::read_to_string(home.join("secrets").join(name)).unwrap()
}

fn mode(home: &Path, name: &str) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    let about = std::fs::metadata(home.join("secrets").join(name)).unwrap();
    about.permissions().mode() & 0o777
}

/// A command in the system's environment with other variables.
fn waypost(system: &System, arguments: &[&str], settings: &[(&str, &str)]) -> Command {
    let mut command = Command::new(programs().join("waypost"));
    command.args(arguments).kill_on_drop(true);
    for name in [
        "NATS_URL",
        "DATABASE_URL",
        "WAYPOST_LOG_PREFIX",
        "WAYPOST_HOME",
    ] {
        command.envs(system.setting(name).map(|value| (name, value)));
    }
    command.envs(settings.iter().copied());
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A command's output, or its error message if it failed.
async fn outcome(mut command: Command) -> Result<Value, String> {
    let output = command.output().await.unwrap();
    if output.status.success() {
        return Ok(serde_json::from_slice(&output.stdout).unwrap());
    }
    Err(String::from_utf8(output.stderr).unwrap())
}

#[tokio::test]
async fn a_running_system_gets_another_master_key_and_goes_on() {
    let mut system = System::start(SHAPE, &[]).await;
    let old = key(system.home(), "master.key");
    {
        let sealed = Sealed::new(&system).await;
        sealed.works().await;
        let rotating = system.waypost(ROTATE);
        let using = async {
            for _ in 0..10 {
                sealed.works().await;
                register(&system).await;
            }
        };
        let (rotated, ()) = tokio::join!(rotating, using);
        // The organization and the person, and anyone who registered meanwhile.
        assert!(rotated["rotated"].as_u64().unwrap() >= 2, "{rotated}");
        assert_eq!(rotated["finished"], true);
        let kept = Path::new(rotated["oldKey"].as_str().unwrap());
        assert_eq!(std::fs::read_to_string(kept).unwrap(), old);
        sealed.works().await;
        register(&system).await;
    }
    let new = key(system.home(), "master.key");
    assert_ne!(new, old);
    assert!(!system.home().join("secrets/master.key.new").exists());
    let modes = ["master.key", "master.key.old"].map(|name| mode(system.home(), name));
    assert_eq!(modes, [0o600, 0o600]);

    let email = register(&system).await;
    for program in system.programs() {
        program.kill();
        program.restart();
    }
    system.until_ready().await;
    signs_in(&system, &email).await;

    let stats = [
        "key", "create", "--org", "none", "--name", "n", "--scope", "admin",
    ];
    let refused = outcome(waypost(&system, &stats, &[("WAYPOST_MASTER_KEY", &old)])).await;
    let said = refused.unwrap_err();
    assert!(said.contains("another master key"), "{said}");
}

#[tokio::test]
async fn a_rotation_that_was_killed_goes_on_when_it_is_run_again() {
    let system = System::start(SHAPE, &[]).await;
    let sealed = Sealed::new(&system).await;
    for _ in 0..3 {
        register(&system).await;
    }
    let old = key(system.home(), "master.key");
    for told in ["Wrapping owners' keys", "Waiting"] {
        let mut child = waypost(&system, ROTATE, &[]).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.starts_with(told) {
                break;
            }
        }
        child.kill().await.unwrap();
        sealed.works().await;
    }
    let rotated = system.waypost(ROTATE).await;
    assert!(rotated["rotated"].as_u64().unwrap() >= 5, "{rotated}");
    assert_ne!(key(system.home(), "master.key"), old);
    assert_eq!(key(system.home(), "master.key.old"), old);
    sealed.works().await;
    register(&system).await;
    // Another rotation keeps both keys before it.
    let second = key(system.home(), "master.key");
    let again = system.waypost(ROTATE).await;
    let kept = Path::new(again["oldKey"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(kept).unwrap(), second);
    assert_eq!(key(system.home(), "master.key.old"), old);
    sealed.works().await;
}

#[tokio::test]
async fn a_backup_from_after_a_rotation_is_restored_with_the_new_key() {
    let system = System::start(SHAPE, &[]).await;
    let email = register(&system).await;
    let folder = system.home().join("before");
    system.waypost(&["backup", folder.to_str().unwrap()]).await;
    system.waypost(ROTATE).await;
    let refused = system
        .waypost_output(&["restore", folder.to_str().unwrap()], b"")
        .await;
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("another master key"), "{said}");
    let folder = system.home().join("after");
    system.waypost(&["backup", folder.to_str().unwrap()]).await;
    let (restored, _) = system.restored(&folder).await;
    signs_in(&restored, &email).await;
    register(&restored).await;
}

#[tokio::test]
async fn a_given_master_key_is_rotated_in_two_runs() {
    let old = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let new = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
    let system = System::start(SHAPE, &[("WAYPOST_MASTER_KEY", old)]).await;
    let sealed = Sealed::new(&system).await;
    let file = system.home().join("new.key");
    std::fs::write(&file, new).unwrap();
    let begin = ["master-key", "rotate", "--new-key", file.to_str().unwrap()];
    let by = |key| vec![("WAYPOST_MASTER_KEY", key)];

    let unnamed = outcome(waypost(&system, ROTATE, &by(old))).await;
    assert!(unnamed.unwrap_err().contains("--new-key"));
    let begun = outcome(waypost(&system, &begin, &by(old))).await.unwrap();
    assert_eq!(begun["finished"], false, "{begun}");
    sealed.works().await;
    // Either key opens the log until the second run.
    for key in [old, new] {
        let list = ["org", "create", "--name", "n"];
        outcome(waypost(&system, &list, &by(key))).await.unwrap();
    }
    let ended = outcome(waypost(&system, ROTATE, &by(new))).await.unwrap();
    assert_eq!(ended["finished"], true, "{ended}");
    let create = ["org", "create", "--name", "n"];
    let refused = outcome(waypost(&system, &create, &by(old))).await;
    assert!(refused.unwrap_err().contains("another master key"));
    outcome(waypost(&system, &create, &by(new))).await.unwrap();
    sealed.works().await;
    register(&system).await;
}
