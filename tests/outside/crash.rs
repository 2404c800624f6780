//! kill -9 of everything under load: what was acknowledged is there, once.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use harness::{Answer, Client, Organization, Receiver, Socket, System, eventually_within};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::active;
use crate::SHAPE;

const CRASHES: usize = 3;
/// Number of acknowledgements between two crashes.
const BETWEEN: usize = 120;

/// The responses to clients.
#[derive(Default)]
struct Told {
    acknowledged: AtomicUsize,
    over: AtomicBool,
}

impl Told {
    /// Retries until the response has this status; gives up only with the whole test.
    async fn until_told(
        &self,
        status: u16,
        send: impl AsyncFn() -> Option<Answer>,
    ) -> Option<Answer> {
        loop {
            if let Some(answer) = send().await
                && answer.status.as_u16() == status
            {
                self.acknowledged.fetch_add(1, Ordering::Relaxed);
                return Some(answer);
            }
            if self.over.load(Ordering::Relaxed) {
                return None;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn post(client: &Client, path: &str, key: Option<&str>, body: &Value) -> Option<Answer> {
    let request = client
        .request(Method::POST, path)
        .timeout(Duration::from_secs(5))
        .header("content-type", "application/json")
        .body(body.to_string());
    let request = match key {
        Some(key) => request.header("idempotency-key", key),
        None => request,
    };
    Answer::or_error(request).await.ok()
}

/// Triggers until all is over, each trigger until it is acknowledged; returns the runs. `insist`:
/// under an `Idempotency-Key`, so that there is one run however often it is sent.
async fn trigger(
    told: &Told,
    client: &Client,
    path: &str,
    name: &str,
    insist: bool,
) -> Vec<String> {
    let mut runs = Vec::new();
    while !told.over.load(Ordering::Relaxed) {
        let nth = format!("{name}-{}", runs.len());
        let key = insist.then_some(nth.as_str());
        let body = json!({"nth": nth});
        let answer = told
            .until_told(202, async || post(client, path, key, &body).await)
            .await;
        let Some(answer) = answer else { break };
        runs.push(answer.json()["runId"].as_str().unwrap().to_owned());
    }
    runs
}

/// Writes contacts until all is over; returns the ids of the acknowledged ones.
async fn write(told: &Told, client: &Client, name: &str) -> Vec<String> {
    let mut written = Vec::new();
    while !told.over.load(Ordering::Relaxed) {
        let body = json!({"email": format!("{name}-{}@b.c", written.len())});
        let key = format!("{name}-{}", written.len());
        let send = async || post(client, "/api/v1/records/contacts", Some(&key), &body).await;
        let Some(answer) = told.until_told(201, send).await else {
            break;
        };
        written.push(answer.json()["id"].as_str().unwrap().to_owned());
    }
    written
}

/// Crashes the system repeatedly while it is under load, then lets the load end.
async fn crash_under_load(system: &mut System, told: &Told) {
    for _ in 0..CRASHES {
        let enough = told.acknowledged.load(Ordering::Relaxed) + BETWEEN;
        eventually_within(Duration::from_mins(1), "acknowledgements", async || {
            (told.acknowledged.load(Ordering::Relaxed) >= enough).then_some(())
        })
        .await;
        system.crash();
        system.revive().await;
    }
    told.over.store(true, Ordering::Relaxed);
}

/// The events of a run, and the name that its trigger gave it.
#[derive(Debug, Default)]
struct History {
    types: Vec<String>,
    name: String,
}

/// Everything a subscription shows until the given number of runs have ended.
async fn histories(socket: &mut Socket, ends: usize) -> HashMap<String, History> {
    let mut histories: HashMap<String, History> = HashMap::new();
    let mut ended = 0;
    while ended < ends {
        let event = socket.next_of("event").await["event"].take();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if text(&event["type"]).starts_with("custom.") {
            continue; // These have only the data that the workflow gave them.
        }
        let history = histories.entry(text(&event["data"]["runId"])).or_default();
        let kind = text(&event["type"]);
        if kind == "workflow.triggered" {
            history.name = text(&event["data"]["triggerPayload"]["nth"]);
        }
        ended += usize::from(kind == "run.succeeded");
        history.types.push(kind);
    }
    histories
}

/// Asserts that there are no duplicates.
#[track_caller]
fn assert_once<T: std::hash::Hash + Eq + std::fmt::Debug>(things: impl Iterator<Item = T>) {
    let mut seen = HashSet::new();
    for thing in things {
        assert!(!seen.contains(&thing), "{thing:?} stands twice");
        seen.insert(thing);
    }
}

async fn total(org: &Organization<'_>, list: &str) -> usize {
    let list = org.admin.get(list).await.ok(200);
    usize::try_from(list["total"].as_u64().unwrap()).unwrap()
}

async fn until_all_have_ended(org: &Organization<'_>, runs: &str) -> usize {
    let limit = Duration::from_secs(90);
    eventually_within(limit, "every run to end", async || {
        let all = total(org, runs).await;
        (total(org, &format!("{runs}?state=SUCCEEDED")).await == all).then_some(all)
    })
    .await
}

#[tokio::test]
async fn what_was_acknowledged_survives_kill_9_of_everything() {
    let mut system = System::start_alone(SHAPE, &[]).await;
    let receiver = Receiver::start().await;
    let (admin, id, key, workflow, after) = {
        let org = system.organization().await;
        let definition = active(&json!([
            {"id": "start", "type": "TRIGGER", "next": ["call"]},
            {"id": "call", "type": "HTTP", "url": receiver.url("/"), "next": ["tell"],
             "retry": {"maxAttempts": 50, "initialSeconds": 0.1, "maxSeconds": 1}},
            {"id": "tell", "type": "NOTIFY", "event": "told"},
        ]));
        let workflow = org.workflow(&definition).await;
        let marker = json!({"id": "marker", "email": "a@b.c"});
        let marker = org.admin.post("/api/v1/records/contacts", &marker).await;
        (
            org.admin.clone(),
            org.id.clone(),
            org.key.clone(),
            workflow,
            marker.position(),
        )
    };
    let path = format!("/api/v1/workflows/{workflow}/trigger");
    let told = Told::default();
    let (insisting, trying, writing, ()) = {
        let trigger = |name: &'static str, insist| trigger(&told, &admin, &path, name, insist);
        tokio::join!(
            join_all(["a", "b", "c", "d"].map(|name| trigger(name, true))),
            join_all(["e", "f"].map(|name| trigger(name, false))),
            join_all(["g", "h"].map(|name| write(&told, &admin, name))),
            crash_under_load(&mut system, &told),
        )
    };
    let [insisting, trying, written] = [insisting, trying, writing].map(|lists| lists.concat());

    let org = Organization {
        system: &system,
        id,
        admin,
        key,
    };
    let runs = format!("/api/v1/workflows/{workflow}/runs");
    let all = until_all_have_ended(&org, &runs).await;
    let mut socket = Socket::open(&system, &org.key).await;
    socket.subscribe("all", "runs", Some(&after)).await;
    let histories = histories(&mut socket, all).await;
    assert_eq!(histories.len(), all, "the log and the list agree");
    for (run, History { types, .. }) in &histories {
        for once in ["workflow.triggered", "run.started", "run.succeeded"] {
            let times = types.iter().filter(|kind| *kind == once).count();
            assert_eq!(times, 1, "{run}: {types:?}");
        }
    }
    for run in insisting.iter().chain(&trying) {
        assert!(histories.contains_key(run), "{run} is lost");
    }
    assert_once(insisting.iter().chain(&trying));
    // Insisting yields one run, however often it was sent.
    let names = histories.values().map(|history| history.name.as_str());
    assert_once(names.filter(|name| name.starts_with(['a', 'b', 'c', 'd'])));

    let answer = org.admin.get("/api/export/contacts").await;
    assert_eq!(answer.status, StatusCode::OK);
    let rows: Vec<_> = csv::Reader::from_reader(answer.body.as_slice())
        .into_records()
        .map(Result::unwrap)
        .collect();
    let ids: HashSet<&str> = rows.iter().map(|row| &row[0]).collect();
    for id in &written {
        assert!(ids.contains(id.as_str()), "contact {id} is lost");
    }
    assert_once(rows.iter().map(|row| &row[0]));
    assert_once(rows.iter().map(|row| &row[3]));
}
