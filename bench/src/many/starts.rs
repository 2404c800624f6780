//! Starts of services after a kill, and their memory afterwards.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::large::{caught_up, peak, resident};
use crate::report::Report;
use crate::system::{Process, System, ready_within};

/// A million of everything must be read within this.
const TIMEOUT: Duration = Duration::from_mins(30);
/// A runner saves its progress every few seconds, and a service that has read much saves its state.
const NOTED: Duration = Duration::from_secs(6);
/// Memory that was only needed to start is freed soon afterwards.
const SETTLED: Duration = Duration::from_secs(3);

/// A start of a program after a kill.
pub(super) struct Start {
    program: &'static str,
    ready: Duration,
    /// Bytes held after the start, and at most.
    resident: u64,
    peak: u64,
}

/// Starts of programs.
#[derive(Default)]
pub(super) struct Starts {
    all: Vec<Start>,
    /// How long the projector's first start took until it had caught up.
    pub(super) projected: Duration,
    /// How long the runner's first start took, without a checkpoint of the new events.
    taken_in: Duration,
}

impl Starts {
    pub(super) fn of(&self, program: &str) -> &Start {
        let found = self.all.iter().find(|start| start.program == program);
        found.expect("a program")
    }
}

/// Starts the programs side by side, each after a previous one was given time to save its state and
/// was killed.
pub(super) async fn started(system: &System, programs: &[&'static str]) -> Starts {
    let (mut starts, mut processes) = (Starts::default(), Vec::new());
    for program in programs {
        if *program == "projector" {
            let begun = Instant::now();
            let _process = ready(system, program).await;
            caught_up(system).await;
            starts.projected = begun.elapsed();
        } else {
            let (_process, taken_in) = ready(system, program).await;
            if *program == "workflow-runner" {
                starts.taken_in = taken_in;
            }
            sleep(NOTED).await;
        }
        let (process, start) = start(system, program).await;
        starts.all.push(start);
        processes.push(process);
    }
    starts
}

/// Starts a program and measures its memory.
pub(super) async fn start(system: &System, program: &'static str) -> (Process, Start) {
    let (process, ready) = ready(system, program).await;
    sleep(SETTLED).await;
    let pid = process.pid();
    let start = Start {
        program,
        ready,
        resident: resident(pid),
        peak: peak(pid),
    };
    (process, start)
}

/// Starts a program and waits until it is ready; returns how long that took.
async fn ready(system: &System, program: &str) -> (Process, Duration) {
    let started = Instant::now();
    let process = system.run(program);
    ready_within(process.addr, TIMEOUT).await;
    (process, started.elapsed())
}

/// Reports all starts beside those on an empty log.
pub(super) fn compare(state: &str, with: &Starts, empty: &Starts, report: &mut Report) {
    report.times(
        &format!("workflow-runner first ready {state}, over an empty log"),
        &[(with.taken_in, empty.taken_in)],
        "",
    );
    for start in &with.all {
        compare_one(state, start, empty.of(start.program), report);
    }
}

/// Reports a start beside that on an empty log.
pub(super) fn compare_one(state: &str, with: &Start, empty: &Start, report: &mut Report) {
    let program = with.program;
    let what = format!("{program} ready after kill -9 {state}, over an empty log");
    report.times(&what, &[(with.ready, empty.ready)], "");
    let what = format!("memory of {program} {state}");
    report.memories(
        &what,
        (with.resident, with.peak),
        (empty.resident, empty.peak),
    );
}
