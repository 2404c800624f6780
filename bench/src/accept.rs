//! Triggers accepted per second: each authenticated, limited, decided and flushed to disk.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::load::{self, Connection};
use crate::report::Report;
use crate::system::System;
use crate::{ceiling, plain};

/// Keys that share the load, like many tenants.
const KEYS: usize = 1_000;
const WORKFLOW: &str = "bench";
const BODY: &str = r#"{"email":"ada@example.com","name":"Ada","score":81,"source":"web form"}"#;

type Requests = Arc<Vec<Vec<u8>>>;

/// Measures accepting against bare publishing, against a plain handler, and without guards.
pub(crate) async fn measure(system: &System, time: Duration, rounds: usize, report: &mut Report) {
    let (org, keys) = prepare(system).await;
    let (many, hot) = (requests(&keys), requests(&keys[..1]));
    let ours = system.addr();
    accepted(ours, 64, Duration::from_secs(1), &many).await;

    lone(ours, &many, time, report).await;
    let what = "over bare acknowledged publishes";
    over_bare(system, &many, what, time, rounds, report).await;

    without_guards(system, &org, &many, time, rounds, report).await;

    // Last: the work this leaves to Postgres (vacuum, checkpoints) must not affect another figure.
    plain::prepare(system.servers.database_url(), &keys, WORKFLOW).await;
    let handler = system.spawn_self(&["--plain"]).await;
    against(
        ours,
        handler.addr,
        64,
        (&many, "1,000 keys, over a plain handler", "2"),
        time,
        rounds,
        report,
    )
    .await;
    against(
        ours,
        handler.addr,
        64,
        (&hot, "one hot key, over a plain handler", "3"),
        time,
        rounds,
        report,
    )
    .await;
    drop(handler);
}

/// Measures accepting against bare publishing on three NATS servers that keep three copies.
pub(crate) async fn measure_replicated(
    system: &System,
    time: Duration,
    rounds: usize,
    report: &mut Report,
) {
    let (org, keys) = prepare(system).await;
    let many = requests(&keys);
    accepted(system.addr(), 64, Duration::from_secs(1), &many).await;
    let what = "over bare acknowledged publishes";
    over_bare(system, &many, what, time, rounds, report).await;
    without_guards(system, &org, &many, time, rounds, report).await;
}

async fn over_bare(
    system: &System,
    requests: &Requests,
    what: &str,
    time: Duration,
    rounds: usize,
    report: &mut Report,
) {
    for (connections, aim) in [(64, "1.0, at least 0.7"), (256, "2.0, at least 1.4")] {
        let mut pairs = Vec::new();
        for _ in 0..rounds {
            let bare = ceiling::publishes(system, connections, time).await;
            pairs.push((
                accepted(system.addr(), connections, time, requests).await,
                bare,
            ));
        }
        let what = format!("triggers, {connections} connections, {what}");
        report.rate(&what, &pairs, aim);
    }
}

async fn without_guards(
    system: &System,
    org: &str,
    requests: &Requests,
    time: Duration,
    rounds: usize,
    report: &mut Report,
) {
    let unguarded = system.spawn_self(&["--unguarded", org]).await;
    let what = "over the same without authentication and limits";
    for connections in [64, 256] {
        let against_what = (requests, what, "0.8");
        let (ours, other) = (system.addr(), unguarded.addr);
        against(ours, other, connections, against_what, time, rounds, report).await;
    }
}

async fn against(
    ours: SocketAddr,
    other: SocketAddr,
    connections: usize,
    (requests, what, aim): (&Requests, &str, &str),
    time: Duration,
    rounds: usize,
    report: &mut Report,
) {
    let mut pairs = Vec::new();
    for _ in 0..rounds {
        let theirs = accepted(other, connections, time, requests).await;
        pairs.push((accepted(ours, connections, time, requests).await, theirs));
    }
    report.rate(
        &format!("triggers, {connections} connections, {what}"),
        &pairs,
        aim,
    );
}

async fn accepted(
    addr: SocketAddr,
    connections: usize,
    time: Duration,
    requests: &Requests,
) -> f64 {
    let outcome = load::run(addr, connections, time, "202", requests.clone()).await;
    assert_eq!(outcome.other, 0, "{addr} answered otherwise than 202");
    outcome.rate()
}

async fn lone(addr: SocketAddr, requests: &Requests, time: Duration, report: &mut Report) {
    let outcome = load::run(addr, 1, time, "202", requests.clone()).await;
    report.time(
        "a lone trigger on an idle system, p50",
        outcome.percentile(50),
        "under 3 ms",
    );
    report.time(
        "a lone trigger on an idle system, p99",
        outcome.percentile(99),
        "",
    );
}

/// One trigger request per key.
pub(crate) fn requests(keys: &[String]) -> Requests {
    let path = format!("/api/v1/workflows/{WORKFLOW}/trigger");
    let requests = keys.iter().map(|key| load::post(&path, key, BODY));
    Arc::new(requests.collect())
}

/// Creates a workflow to trigger; returns its organization, and the keys that trigger it.
pub(crate) async fn prepare(system: &System) -> (String, Vec<String>) {
    let (org, admin) = system.organization().await;
    let definition = json!({
        "name": "Bench",
        "status": "ACTIVE",
        "steps": [{ "id": "start", "type": "TRIGGER" }],
    });
    put_workflow(system, &org, WORKFLOW, &definition).await;
    let mut connection = Connection::open(system.addr()).await;
    let mut keys = Vec::with_capacity(KEYS);
    let body = json!({
        "name": "bench", "scopes": ["workflows:trigger"], "rateLimit": 1_000_000_000,
    });
    let create = load::post("/api/v1/keys", &admin, &body.to_string());
    for _ in 0..KEYS {
        let answer = connection.send_for_body(&create).await;
        keys.push(answer["key"].as_str().expect("a key").to_owned());
    }
    (org, keys)
}

/// Saves a workflow with the operator's command line.
pub(crate) async fn put_workflow(
    system: &System,
    org: &str,
    id: &str,
    definition: &serde_json::Value,
) {
    let file = std::env::temp_dir().join(format!("waypost-bench-{}.json", std::process::id()));
    std::fs::write(&file, definition.to_string()).expect("a file");
    let name = file.display().to_string();
    system
        .waypost(&["workflow", "put", "--org", org, "--id", id, &name])
        .await;
    std::fs::remove_file(&file).expect("the file goes");
}
