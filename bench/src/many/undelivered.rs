//! Deliveries to receivers that are down, each tried twice and waiting for its next attempt.

use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use event_log::EventLog;
use schemas::Log;
use serde_json::json;
use tokio::time::sleep;

use super::starts::{Starts, compare_one, start};
use crate::large::crash_nats;
use crate::large::fill::Fill;
use crate::load::{self, Connection};
use crate::report::Report;
use crate::system::{Process, System, ready_within};

/// Deliveries of an endpoint that may wait for a retry before it gets no new ones.
const OF_AN_ENDPOINT: usize = 10_000;
/// Attempts at each delivery before it waits for minutes.
const ATTEMPTS: usize = 2;
const TIMEOUT: Duration = Duration::from_mins(30);
const LOOK: Duration = Duration::from_millis(100);

/// Leaves `count` deliveries open and restarts the runner.
pub(super) async fn measure(
    system: &mut System,
    log: &EventLog,
    count: usize,
    empty: &Starts,
    report: &mut Report,
) {
    let count = leave_open(system, log, count, report).await;
    crash_nats(system, log, "with open deliveries", report).await;
    let begun = Instant::now();
    let (runner, start) = start(system, "workflow-runner").await;
    until_known(&runner, count).await;
    let what = "all open deliveries known after kill -9";
    report.time(what, begun.elapsed(), "");
    let empty = empty.of("workflow-runner");
    compare_one("among open deliveries too", &start, empty, report);
}

/// Attempts about `count` deliveries, and kills the runner; returns how many there are.
async fn leave_open(system: &System, log: &EventLog, count: usize, report: &mut Report) -> usize {
    let endpoints = count.div_ceil(OF_AN_ENDPOINT);
    let orders = count / endpoints;
    let (org, key) = system.organization().await;
    let (commands, runner) = (system.run("command-api"), system.run("workflow-runner"));
    for process in [&commands, &runner] {
        ready_within(process.addr, TIMEOUT).await;
    }
    subscribe(commands.addr, &key, endpoints).await;
    drop(commands);
    let fill = Fill::open(system, &org, "w").await;
    let (begun, before) = (Instant::now(), end(log).await);
    fill.orders(0, orders).await;
    let attempts = orders * endpoints * ATTEMPTS;
    while end(log).await < before + attempts as u64 {
        assert!(begun.elapsed() < TIMEOUT, "every delivery is tried");
        sleep(LOOK).await;
    }
    report.count("attempts at deliveries", attempts, begun.elapsed());
    until_known(&runner, orders * endpoints).await;
    orders * endpoints
}

async fn end(log: &EventLog) -> u64 {
    log.end(Log::Deliveries).await.expect("an end").sequence()
}

/// Creates endpoints for new orders at an address where nothing listens.
async fn subscribe(commands: SocketAddr, key: &str, endpoints: usize) {
    let nobody = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = nobody.local_addr().expect("an address");
    drop(nobody);
    let mut connection = Connection::open(commands).await;
    for nth in 0..endpoints {
        let hook = json!({ "url": format!("http://{addr}/{nth}"), "events": ["order.created"] });
        let request = load::post("/api/v1/webhooks", key, &hook.to_string());
        connection.send_for_body(&request).await;
    }
}

/// Waits until a runner has at least `count` deliveries to retry.
async fn until_known(runner: &Process, count: usize) {
    let started = Instant::now();
    while retrying(runner.addr).await < count {
        assert!(started.elapsed() < TIMEOUT, "every delivery is known");
        sleep(LOOK).await;
    }
}

async fn retrying(runner: SocketAddr) -> usize {
    let answer = reqwest::get(format!("http://{runner}/metrics")).await;
    let metrics = answer.expect("an answer").text().await.expect("metrics");
    let lines = metrics.lines();
    let retrying = lines.filter(|line| line.starts_with("waypost_webhook_retrying"));
    let counts = retrying.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok());
    counts.sum()
}
