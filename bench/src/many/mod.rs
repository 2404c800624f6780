//! Much open state: a million persons with their circles, a million runs that wait for a time, and
//! deliveries to receivers that are down. Measures each service's start and memory with it.

mod fill;
mod starts;
mod undelivered;

use std::time::Instant;

use crate::large::{PROGRAMS, crash_nats};
use crate::report::Report;
use crate::system::System;
use fill::{EVENTS_A_RUN, Fill, PERSONS_A_FAMILY, RUNS_AN_ORGANIZATION, WORKFLOW};
use starts::{Starts, compare, started};

/// Number of persons per delivery.
const PERSONS_A_DELIVERY: usize = 10;
/// The programs that keep open runs.
const OF_RUNS: [&str; 2] = ["projector", "workflow-runner"];

/// Its runs wait in a step that takes longer than the whole measurement.
const DEFINITION: &str = r#"{"name":"Later","status":"ACTIVE","timeoutSeconds":604800,"steps":[
    {"id":"start","type":"TRIGGER","next":["later"]},
    {"id":"later","type":"DELAY","seconds":86400}]}"#;

/// Fills an empty log with `accounts` accounts, as many waiting runs, and a tenth as many circles
/// and open deliveries, and after each restarts the programs that keep them.
pub(crate) async fn measure(system: &mut System, accounts: usize, report: &mut Report) {
    let empty = started(system, &PROGRAMS).await;
    let fill = Fill::open(system).await;
    persons(system, &fill, accounts, &empty, report).await;
    runs(system, &fill, accounts, &empty, report).await;
    let deliveries = accounts / PERSONS_A_DELIVERY;
    undelivered::measure(system, fill.log(), deliveries, &empty, report).await;
}

async fn persons(
    system: &mut System,
    fill: &Fill,
    accounts: usize,
    empty: &Starts,
    report: &mut Report,
) {
    let begun = Instant::now();
    fill.families(accounts / PERSONS_A_FAMILY).await;
    let what = "accounts written, with keys and circles";
    report.count(what, accounts, begun.elapsed());
    crash_nats(system, fill.log(), "with persons", report).await;
    let with = started(system, &PROGRAMS).await;
    report.count("persons projected", accounts, with.projected);
    compare("among persons", &with, empty, report);
}

async fn runs(system: &mut System, fill: &Fill, runs: usize, empty: &Starts, report: &mut Report) {
    let definition = system.write("later.json", DEFINITION);
    let mut orgs = Vec::new();
    for _ in 0..runs.div_ceil(RUNS_AN_ORGANIZATION) {
        let (org, _) = system.organization().await;
        let put = [
            "workflow",
            "put",
            "--org",
            &org,
            "--id",
            WORKFLOW,
            &definition,
        ];
        system.waypost(&put).await;
        orgs.push(org.as_str().into());
    }
    let begun = Instant::now();
    fill.waiting_runs(&orgs, runs).await;
    let events = runs * EVENTS_A_RUN;
    report.count("events of waiting runs written", events, begun.elapsed());
    crash_nats(system, fill.log(), "with waiting runs", report).await;
    let with = started(system, &OF_RUNS).await;
    report.count("waiting runs projected", runs, with.projected);
    compare("among waiting runs too", &with, empty, report);
}
