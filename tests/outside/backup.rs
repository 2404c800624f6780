//! Backups of a running system, and restoring from them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use harness::{Client, Organization, Person, Receiver, Socket, System};
use serde_json::{Value, json};

use super::active;
use crate::{SHAPE, system};

const CONTACTS: &str = "/api/v1/records/contacts";
const EVENTS: &str = "/api/v1/events";

/// A workflow that makes a call and sends a notification about it.
fn calls(receiver: &Receiver) -> Value {
    active(&json!([
        {"id": "start", "type": "TRIGGER", "next": ["call"]},
        {"id": "call", "type": "HTTP", "method": "POST", "url": receiver.url("/step"),
         "body": {"lead": "{{ trigger.lead }}"}, "next": ["tell"]},
        {"id": "tell", "type": "NOTIFY", "event": "called", "data": {}},
    ]))
}

/// Business data, runs with their webhooks, and a person on their way.
struct Story<'s> {
    org: Organization<'s>,
    person: Person,
    receiver: Receiver,
    workflow: String,
    runs: Vec<String>,
    /// The position at which reads see all of it.
    position: String,
}

impl<'s> Story<'s> {
    async fn happen(system: &'s System) -> Self {
        let org = system.organization().await;
        let receiver = Receiver::start().await;
        let hook = json!({"url": receiver.url("/hook"), "events": ["run.*"]});
        org.admin.post("/api/v1/webhooks", &hook).await.ok(201);
        let workflow = org.workflow(&calls(&receiver)).await;
        let mut runs = Vec::new();
        for lead in 1..=3 {
            runs.push(org.trigger(&workflow, &json!({"lead": lead})).await);
        }
        for run in &runs {
            assert_eq!(org.ended(run).await["state"], "SUCCEEDED");
        }
        for id in ["a", "b", "c"] {
            let contact = json!({"id": id, "email": format!("{id}@example.com")});
            org.admin.post(CONTACTS, &contact).await.ok(201);
        }
        let forget = ["forget", "--org", &org.id, "contacts", "b"];
        assert_eq!(system.waypost(&forget).await["events"], 2);
        let person = system.person("Mia").await;
        person.makes_circle().await;
        for lat in [12.5, 12.75] {
            person.is_at(lat, 23.5).await;
        }
        let last = json!({"id": "d", "email": "d@example.com"});
        let position = org.admin.post_once(CONTACTS, "once", &last).await;
        let story = Self {
            person,
            receiver,
            workflow,
            runs,
            position: position.position(),
            org,
        };
        story.delivered(&story.org.admin).await;
        story
    }

    /// Waits until each hook of each run has been delivered and read models show it.
    async fn delivered(&self, client: &Client) -> Value {
        let hooks = client.get("/api/v1/webhooks").await.ok(200);
        let id = hooks["data"][0]["id"].as_str().unwrap();
        let path = format!("/api/v1/webhooks/{id}/deliveries");
        harness::eventually("deliveries", async || {
            let list = client.get(&path).await.ok(200);
            let all = list["data"].as_array().unwrap();
            let ended = all.iter().all(|one| one["status"] == "SUCCEEDED");
            (all.len() >= 3 * self.runs.len() && ended).then_some(list)
        })
        .await
    }

    /// Everything that readers see.
    async fn read(&self, org: &Client, person: &Client, position: &str) -> Vec<(String, Value)> {
        let mut seen = Vec::new();
        let mut paths: Vec<String> = ["a", "c", "d"].map(|id| format!("{CONTACTS}/{id}")).into();
        paths.extend(self.runs.iter().map(|run| format!("/api/v1/runs/{run}")));
        paths.push("/api/v1/workflows".to_owned());
        paths.push("/api/v1/webhooks".to_owned());
        for path in paths {
            let body = org.get_at(&path, position).await.ok(200);
            seen.push((path, body));
        }
        for path in ["/location/latest", "/circles"] {
            let read = person.get_at(path, position).await.ok(200);
            seen.push((path.to_owned(), read));
        }
        let history = format!("/location/history?user_id={}", self.person.id);
        let wanted = |body: &Value| body["data"].as_array().is_some_and(|all| all.len() == 2);
        let history = harness::eventually("positions", async || {
            let body = person.get(&history).await.ok(200);
            wanted(&body).then_some(body)
        })
        .await;
        seen.push(("history".to_owned(), history));
        let export = org.get_at("/api/export/contacts", position).await;
        assert_eq!(export.status, 200, "{}", export.text());
        seen.push(("export".to_owned(), json!(export.text())));
        seen.push(("deliveries".to_owned(), self.delivered(org).await));
        seen
    }
}

/// The feed, without positions, since they contain the epoch.
async fn facts(client: &Client) -> Vec<Value> {
    let read = client.get(EVENTS).await;
    assert_eq!(read.status, 200, "{}", read.text());
    let fact = |line: &str| {
        let mut fact: Value = serde_json::from_str(line).unwrap();
        fact.as_object_mut().unwrap().remove("position");
        fact
    };
    read.text().lines().map(fact).collect()
}

fn folder(system: &System) -> PathBuf {
    let name = format!("backup-{}", uuid::Uuid::new_v4().simple());
    system.home().join(name)
}

async fn backed_up(system: &System) -> (PathBuf, Value) {
    let folder = folder(system);
    let told = system.waypost(&["backup", text(&folder)]).await;
    (folder, told)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[tokio::test]
async fn a_restored_system_answers_as_before_and_does_nothing_twice() {
    let system = System::start(SHAPE, &[]).await;
    let story = Story::happen(&system).await;
    let position = &story.position;
    let before = story
        .read(&story.org.admin, &story.person.client, position)
        .await;
    let feed = facts(&story.org.admin).await;
    let (folder, told) = backed_up(&system).await;
    assert!(told["events"].as_u64().unwrap() >= 30, "{told}");
    assert!(told["deliveries"].as_u64().unwrap() >= 9, "{told}");
    assert_eq!(told["locations"], 2);
    assert!(told["keys"].as_u64().unwrap() >= 2 && told["bytes"].as_u64().unwrap() > 1_000);

    let arrived = story.receiver.received().len();
    let (restored, said) = system.restored(&folder).await;
    for count in ["events", "locations", "deliveries", "keys"] {
        assert_eq!(said[count], told[count], "{count}");
    }
    let position = said["position"].as_str().unwrap();
    let number = |text: &str| text.split_once('-').unwrap().1.to_owned();
    assert_eq!(number(position), number(told["position"].as_str().unwrap()));
    let org = story.org.admin.at(&restored.client());
    let person = story.person.client.at(&restored.client());
    let after = story.read(&org, &person, position).await;
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before, after);
    }
    assert_eq!(facts(&org).await, feed);
    org.get(&format!("{CONTACTS}/b")).await.error(404);

    // It continues, and an earlier request is recognised.
    let last = json!({"id": "d", "email": "d@example.com"});
    let again = org.post_once(CONTACTS, "once", &last).await;
    again.ok(201);
    assert_eq!(
        again.position().split_once('-').unwrap().0,
        position.split_once('-').unwrap().0
    );
    let trigger = format!("/api/v1/workflows/{}/trigger", story.workflow);
    let run = org.post(&trigger, &json!({"lead": 4})).await.ok(202);
    let hooks = |kind: &'static str, run: Value| {
        move |one: &harness::Received| {
            one.path == "/hook" && one.json()["type"] == kind && one.json()["data"]["runId"] == run
        }
    };
    let ended = hooks("run.succeeded", run["runId"].clone());
    story.receiver.wait_for(1, ended).await;
    // Anything repeated would have arrived earlier: events are delivered in order.
    let news = story.receiver.received().split_off(arrived);
    for one in &news {
        let known = if one.path == "/step" {
            one.json()["lead"] != 4
        } else {
            one.json()["data"]["runId"] != run["runId"]
        };
        assert!(!known, "came again: {one:?}");
    }
    let ids = news.iter().filter(|one| one.path == "/hook");
    let ids: HashSet<_> = ids.map(|one| one.header("webhook-id").to_owned()).collect();
    assert!(ids.len() >= 2, "{news:?}");
    assert_eq!(news.iter().filter(|one| one.path == "/step").count(), 1);
    let now = facts(&org).await;
    assert_eq!(now[..feed.len()], feed);
    let others = |fact: &&Value| fact["data"]["runId"] != run["runId"];
    let others = now[feed.len()..].iter().filter(others);
    // The workflow's notification names no run.
    assert!(
        others
            .into_iter()
            .all(|fact| fact["type"] == "custom.called"),
        "{now:?}"
    );
}

#[tokio::test]
async fn a_log_whose_disk_was_lost_comes_back_and_read_models_follow() {
    let mut system = System::start_alone(SHAPE, &[]).await;
    let org = system.organization().await;
    let contact = |id: &str| json!({"id": id, "email": format!("{id}@example.com")});
    let (admin, key) = (org.admin.clone(), org.key.clone());
    admin.post(CONTACTS, &contact("kept")).await.ok(201);
    let (folder, _) = backed_up(&system).await;
    let lost = admin.post(CONTACTS, &contact("lost")).await.position();
    admin
        .get_at(&format!("{CONTACTS}/lost"), &lost)
        .await
        .ok(200);

    system.crash();
    std::fs::remove_dir_all(system.home().join("nats/data")).unwrap();
    system.nats.as_mut().unwrap().restart().await.unwrap();
    system.postgres.as_mut().unwrap().restart().await.unwrap();
    let said = system.waypost(&["restore", text(&folder)]).await;
    system.revive().await;
    let admin = system.client().with_key(&key);
    let position = said["position"].as_str().unwrap();
    admin
        .get_at(&format!("{CONTACTS}/kept"), position)
        .await
        .ok(200);
    admin.get(&format!("{CONTACTS}/lost")).await.error(404);
    // The sequence of the lost event is reused by another.
    let next = admin.post(CONTACTS, &contact("next")).await.position();
    assert_eq!(
        next.split_once('-').unwrap().1,
        lost.split_once('-').unwrap().1
    );
    admin
        .get_at(&format!("{CONTACTS}/next"), &next)
        .await
        .ok(200);
    let totals = admin.get_at("/api/export/contacts", &next).await.text();
    assert!(totals.contains("kept@") && totals.contains("next@") && !totals.contains("lost@"));
}

#[tokio::test]
async fn a_client_with_a_position_from_before_a_restore_is_asked_to_start_over() {
    let system = System::start(SHAPE, &[]).await;
    let org = system.organization().await;
    let contact = json!({"id": "a", "email": "a@example.com"});
    let old = org.admin.post(CONTACTS, &contact).await.position();
    system.person("Mia").await;
    let (folder, _) = backed_up(&system).await;
    let (restored, _) = system.restored(&folder).await;
    let client = org.admin.at(&restored.client());
    let said = client
        .get(&format!("{EVENTS}?after={old}"))
        .await
        .error(410);
    assert!(said.contains("restored"), "{said}");
    let read = client.get_at(&format!("{CONTACTS}/a"), &old).await;
    let said = read.error(400);
    assert!(said.contains("restored"), "{said}");
    let mut socket = Socket::open(&restored, &org.key).await;
    let frame = json!({"type": "subscribe", "id": "s", "channel": "events", "after": old});
    socket.send(&frame).await;
    assert_eq!(socket.next().await["type"], "subscribed");
    assert_eq!(socket.next().await, json!({"type": "reset", "id": "s"}));
}

#[tokio::test]
async fn a_change_to_a_backup_is_found_and_named() {
    let system = system().await;
    system.organization().await;
    let (folder, told) = backed_up(system).await;
    let verify = ["backup", "verify", text(&folder)];
    let checked = system.waypost(&verify).await;
    for field in [
        "events",
        "locations",
        "deliveries",
        "keys",
        "bytes",
        "position",
    ] {
        assert_eq!(checked[field], told[field], "{field}");
    }
    let file = folder.join("EVENTS-000001");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let found = system.waypost_output(&verify, b"").await;
    assert!(!found.status.success());
    assert!(found.stdout.is_empty());
    let said = String::from_utf8_lossy(&found.stderr);
    assert!(said.contains("EVENTS 1: the record was changed"), "{said}");
}

#[tokio::test]
async fn a_backup_holds_neither_the_master_key_nor_what_was_sealed() {
    let system = system().await;
    let org = system.organization().await;
    let secret = "a secret that stands nowhere";
    let set = ["secret", "set", "--org", &org.id, "NAME"];
    system.waypost_reading(&set, secret.as_bytes()).await;
    let person = system.person("Mia Unwritten").await;
    let (folder, _) = backed_up(system).await;
    let master = std::fs::read(system.home().join("secrets/master.key")).unwrap();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let texts = [secret.as_bytes(), b"Mia Unwritten", person.email.as_bytes()];
        for text in texts.into_iter().chain([master.trim_ascii()]) {
            assert!(!bytes.windows(text.len()).any(|some| some == text));
        }
    }
}

#[tokio::test]
async fn a_running_system_and_another_s_key_are_refused() {
    let system = system().await;
    system.organization().await;
    let (folder, _) = backed_up(system).await;
    let here = system
        .waypost_output(&["restore", text(&folder)], b"")
        .await;
    assert!(!here.status.success());
    let said = String::from_utf8_lossy(&here.stderr);
    assert!(
        said.contains("stop every service first") || said.contains("not empty"),
        "{said}"
    );
    let other = System::start(SHAPE, &[]).await;
    let there = other.waypost_output(&["restore", text(&folder)], b"").await;
    assert!(!there.status.success());
    let said = String::from_utf8_lossy(&there.stderr);
    assert!(said.contains("another master key"), "{said}");
    let again = system.waypost_output(&["backup", text(&folder)], b"").await;
    assert!(String::from_utf8_lossy(&again.stderr).contains("is not empty"));
}
