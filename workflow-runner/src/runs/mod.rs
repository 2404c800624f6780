//! Durable runs.
//!
//! No state of a run is only in memory: a run is the fold of its own events, and so are the timers.
//! Runs are assigned to partitions by a hash of their ids, and each partition belongs to one
//! process at a time ([`crate::leases`]). The [`scheduler`] follows the log and knows which runs of
//! its partitions are open; a [`job`] carries one of them on. The next owner of a partition starts
//! at its [`checkpoint`] and reads on from there.

mod backlog;
mod cache;
mod capacity;
mod catch_up;
mod checkpoint;
mod draft;
mod evaluator;
mod executor;
mod held;
mod index;
mod job;
mod measure;
mod open;
mod program;
mod programs;
mod renderer;
mod scheduler;
mod secrets;
mod settings;
mod steps;
pub mod triggers;
mod turn;
mod worker_pool;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use event_log::{Error, EventLog};
use service::Clock;
use service::health::Readiness;
use tokio_util::sync::CancellationToken;

use crate::checkpoints::{Checkpoints, Kind};
use crate::leases::Leases;
use crate::people::People;
use crate::targets::Targets;
use job::Shared;
use scheduler::Scheduler;
use triggers::MissedEventSearch;

pub use open::OpenRuns;
pub use renderer::Renderer;
pub use settings::{RunSettings, TemplateSettings};

/// The name of the scheduler's readiness check.
pub(crate) const CHECK: &str = "workflow-runner/runs";

/// Dependencies of the run scheduler.
#[derive(Clone)]
pub struct Dependencies {
    /// The log.
    pub log: EventLog,
    /// The partitions whose runs are carried out here.
    pub leases: Leases,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// To whom the activity of persons may be shown.
    pub people: People,
    /// For calls to the outside.
    pub targets: Targets,
    /// Where this part reports whether it is ready.
    pub readiness: Readiness,
    /// Compiles and evaluates templates.
    pub renderer: Renderer,
    /// The settings.
    pub settings: RunSettings,
    /// Where open runs are counted.
    pub open_runs: OpenRuns,
}

/// The state of the scheduler, for the readiness check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum SchedulerState {
    Starting,
    CatchingUp,
    Following,
    Ended,
}

/// Carries runs out until `shutdown`, together with every other process that does.
pub async fn run(dependencies: Dependencies, shutdown: CancellationToken) -> Result<(), Error> {
    let Dependencies {
        log,
        leases,
        clock,
        people,
        targets,
        readiness,
        renderer,
        settings,
        open_runs,
    } = dependencies;
    measure::describe();
    let state = Arc::new(AtomicU8::new(SchedulerState::Starting as u8));
    announce(&readiness, &state);
    let checkpoints = Checkpoints::open(&log, Kind::Runs).await?;
    let missed_events =
        MissedEventSearch::open(&log, people, Arc::clone(&clock), renderer.clone()).await?;
    let shared = Arc::new(Shared {
        missed_events,
        renderer,
        secrets: secrets::Secrets::new(log.clone()),
        log,
        clock,
        leases,
        targets,
        capacity: capacity::Capacity::new(&settings),
        stopping: CancellationToken::new(),
    });
    let state_too = Arc::clone(&state);
    let scheduler = Scheduler::new(shared, settings, checkpoints, state_too, open_runs);
    Box::pin(scheduler.run(shutdown)).await;
    state.store(SchedulerState::Ended as u8, Ordering::Relaxed);
    Ok(())
}

fn announce(readiness: &Readiness, state: &Arc<AtomicU8>) {
    let state = Arc::clone(state);
    readiness.add(CHECK, move || {
        let found = state.load(Ordering::Relaxed);
        async move {
            match found {
                found if found == SchedulerState::Following as u8 => Ok(()),
                found if found == SchedulerState::Ended as u8 => Err("ended".to_owned()),
                _ => Err("catching up with the log".to_owned()),
            }
        }
    });
}
