//! A large state: what a log of millions of events costs in memory, and how long recovery takes
//! after a kill.

pub(crate) mod fill;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use event_log::EventLog;
use local_servers::LocalNats;
use schemas::Log;
use tokio::time::sleep;

use crate::load::{self, Connection};
use crate::report::Report;
use crate::system::{System, until_ready};
use fill::{EVENTS_EACH, Fill};

/// Commands sent one after another to measure the latency of a lone one.
const LONE: usize = 500;
/// Number of aggregates per person.
const AGGREGATES_A_PERSON: usize = 200;
pub(crate) const PROGRAMS: [&str; 4] = ["projector", "query-api", "workflow-runner", "command-api"];

/// Fills an empty log with five events for each of `aggregates`, and starts every service on it.
pub(crate) async fn measure(system: &mut System, aggregates: usize, report: &mut Report) {
    let (org, key) = system.organization().await;
    let mut empty = commands_on_an_empty_log(system, &key).await;
    let definition = system.write("w.json", DEFINITION);
    system
        .waypost(&["workflow", "put", "--org", &org, "--id", "w", &definition])
        .await;

    let fill = Fill::open(system, &org, "w").await;
    let started = Instant::now();
    fill.aggregates(aggregates).await;
    let events = aggregates * EVENTS_EACH;
    report.count("events written", events, started.elapsed());
    let started = Instant::now();
    let positions = fill.persons(aggregates.div_ceil(AGGREGATES_A_PERSON)).await;
    report.count("positions written", positions, started.elapsed());
    crash_nats(system, fill.log(), "with all events", report).await;

    let mut full = Vec::new();
    for program in PROGRAMS {
        let started = Instant::now();
        let mut process = system.run(program);
        until_ready(process.addr).await;
        report.time(&format!("{program}, first start"), started.elapsed(), "");
        if program == "projector" {
            caught_up(system).await;
            report.count("events projected", events + positions, started.elapsed());
        }
        report.memory(program, peak(process.pid()));
        drop(process);
        let started = Instant::now();
        process = system.run(program);
        until_ready(process.addr).await;
        let what = format!("{program}, again after kill -9");
        report.time(&what, started.elapsed(), "");
        report.memory(&format!("{program} after that"), peak(process.pid()));
        if program == "command-api" {
            full = lone_commands(process.addr, &key).await;
        }
        system.keep(process);
    }
    for (state, times) in [("an empty log", &mut empty), ("the full log", &mut full)] {
        times.sort_unstable();
        for percent in [50, 99] {
            let time = times[(times.len() - 1) * percent / 100];
            report.time(&format!("a lone PUT on {state}, p{percent}"), time, "");
        }
    }
}

/// A workflow that can be triggered.
pub(crate) const DEFINITION: &str =
    r#"{"name":"Large","status":"ACTIVE","steps":[{"id":"start","type":"TRIGGER"}]}"#;

/// Kills NATS and reports how it recovers; `with` says what the log holds.
pub(crate) async fn crash_nats(
    system: &mut System,
    log: &EventLog,
    with: &str,
    report: &mut Report,
) {
    let nats = system.nats();
    let memory = |nats: &LocalNats| resident(nats.pid().expect("a process"));
    report.memory(&format!("NATS {with}"), memory(nats));
    nats.kill();
    let started = Instant::now();
    nats.restart().await.expect("a restart");
    while log.end(Log::Events).await.is_err() {
        sleep(Duration::from_millis(5)).await;
    }
    let what = format!("NATS {with} answers again after kill -9");
    report.time(&what, started.elapsed(), "");
    report.memory(&format!("NATS {with} after that"), memory(nats));
}

async fn commands_on_an_empty_log(system: &System, key: &str) -> Vec<Duration> {
    let process = system.run("command-api");
    until_ready(process.addr).await;
    lone_commands(process.addr, key).await
}

/// The latency of each of some sequential commands, each to a new record.
async fn lone_commands(addr: SocketAddr, key: &str) -> Vec<Duration> {
    let mut connection = Connection::open(addr).await;
    let mut times = Vec::with_capacity(LONE);
    for _ in 0..LONE {
        let body = r#"{"firstName":"Ada","email":"ada@example.com"}"#;
        let request = load::post("/api/v1/records/contacts", key, body);
        let sent = Instant::now();
        let head = connection.send(&request).await;
        times.push(sent.elapsed());
        assert!(head.starts_with("201"), "{head}");
    }
    times
}

/// Waits until the projections have applied all that the log holds.
pub(crate) async fn caught_up(system: &System) {
    loop {
        let listed = system.waypost(&["projection", "list"]).await;
        let projections = listed["projections"].as_array().expect("projections");
        let mut lags = projections.iter().filter_map(|one| one["lag"].as_u64());
        // A projector that has just started has reported none yet.
        if !projections.is_empty() && lags.all(|lag| lag == 0) {
            return;
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// Current resident memory of a process, in bytes.
pub(crate) fn resident(pid: u32) -> u64 {
    status(pid, "VmRSS:")
}

/// Peak memory of a process in bytes; 0 once it has ended.
pub(crate) fn peak(pid: u32) -> u64 {
    status(pid, "VmHWM:")
}

fn status(pid: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .and_then(|value| value.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1024
}
