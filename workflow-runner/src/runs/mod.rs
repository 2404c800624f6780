//! Durable runs.
//!
//! Nothing about a run is only in memory: it is the fold of its own events, and so are the timers.
//! Runs are shared out by a hash of their ids to partitions, and each partition is one process's
//! at a time ([`crate::leases`]). The [`dispatcher`] follows the log and knows which runs of its
//! partitions are open; a [`job`] carries one of them on. Whoever takes a partition over begins
//! at its [`checkpoint`] and reads on from there.

mod backlog;
mod cache;
mod catch_up;
mod checkpoint;
mod conduct;
mod crew;
mod dispatcher;
mod draft;
mod evaluator;
mod index;
mod job;
mod measure;
mod program;
mod programs;
mod renderer;
mod room;
mod secrets;
mod settings;
mod steps;
pub mod triggers;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use event_log::{Error, EventLog};
use service::Clock;
use service::health::Readiness;
use tokio_util::sync::CancellationToken;

use crate::leases::Leases;
use crate::people::Roll;
use crate::targets::Targets;
use dispatcher::Dispatcher;
use job::Shared;
use triggers::LookBack;

pub use renderer::Renderer;
pub use settings::{RunSettings, TemplateSettings};

/// Into how many parts runs are cut; the same in every process, for ever.
const PARTITIONS: u16 = 32;

/// What runs need.
#[derive(Clone)]
pub struct Dependencies {
    /// The log.
    pub log: EventLog,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Whom what persons do may be shown to.
    pub roll: Roll,
    /// For calls to the outside.
    pub targets: Targets,
    /// Where this part says whether it is ready.
    pub readiness: Readiness,
    /// What compiles and evaluates templates.
    pub renderer: Renderer,
    /// How runs are carried out.
    pub settings: RunSettings,
}

/// How the dispatcher stands, for the readiness check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Standing {
    Starting,
    CatchingUp,
    Following,
    Ended,
}

/// Carries runs out until `shutdown`, together with every other process that does.
pub async fn run(dependencies: Dependencies, shutdown: CancellationToken) -> Result<(), Error> {
    let Dependencies {
        log,
        clock,
        roll,
        targets,
        readiness,
        renderer,
        settings,
    } = dependencies;
    measure::describe();
    let standing = Arc::new(AtomicU8::new(Standing::Starting as u8));
    announce(&readiness, &log, &standing);
    let checkpoints = checkpoint::Checkpoints::open(&log).await?;
    let leases = Leases::start(&log, "runs", PARTITIONS, settings.lease).await?;
    let look_back = LookBack::open(&log, roll, Arc::clone(&clock), renderer.clone()).await?;
    let shared = Arc::new(Shared {
        look_back,
        renderer,
        secrets: secrets::Secrets::new(log.clone()),
        log,
        clock,
        leases: leases.clone(),
        targets,
        room: room::Room::new(&settings),
        stopping: CancellationToken::new(),
    });
    let dispatcher = Dispatcher::new(shared, settings, checkpoints, Arc::clone(&standing));
    Box::pin(dispatcher.run(shutdown)).await;
    standing.store(Standing::Ended as u8, Ordering::Relaxed);
    leases.stop().await;
    Ok(())
}

fn announce(readiness: &Readiness, log: &EventLog, standing: &Arc<AtomicU8>) {
    let (log, standing) = (log.clone(), Arc::clone(standing));
    readiness.add("runs", move || {
        let found = standing.load(Ordering::Relaxed);
        let connected = log.is_connected();
        async move {
            match found {
                _ if !connected => Err("the event log is not connected".to_owned()),
                found if found == Standing::Following as u8 => Ok(()),
                found if found == Standing::Ended as u8 => Err("ended".to_owned()),
                _ => Err("catching up with the log".to_owned()),
            }
        }
    });
}
