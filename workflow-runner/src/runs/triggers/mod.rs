//! What sets runs off beside the API and people, and the events that steps wait for.
//!
//! A [`watcher`] follows the log. Organizations are shared out to partitions, and a partition is
//! judged by one process at a time: [`judge`] decides which workflows an event sets off, and
//! [`settle`] ends the waits that it was for. A run that an event or a time sets off derives its id
//! from the workflow and that event or time, so that it begins once, however often and by however
//! many the event is judged.
//!
//! **Nothing is missed.** A [`checkpoint`] says up to where all events of a partition have been
//! judged, and which waits were open; it never passes an event that has not been. A wait begins
//! with an event of its own in the log, so the order of the log says which events came behind it.
//!
//! **One cause leads to so much and no more.** What runs do may set off further runs; a [`ledger`]
//! counts them for each event or run from outside that they go back to.
//!
//! **Nobody waits for others.** Each organization has a lane ([`lanes`]); lanes take turns.

mod checkpoint;
mod judge;
mod lanes;
mod late;
mod ledger;
mod runs;
mod settle;
mod shown;
mod timers;
mod waits;
mod watcher;
mod workflows;

use std::sync::{Arc, Mutex, RwLock};

use event_log::{EventLog, ReadError, TailError};
use schemas::{AggregateType, Log};
use service::Clock;
use tokio_util::sync::CancellationToken;

use super::RunSettings;
use super::renderer::Renderer;
use crate::leases::Leases;
use crate::people::Roll;
use checkpoint::Checkpoints;
use judge::{Index, Judge};
pub(super) use late::{Late, LookBack};
use watcher::Watcher;

/// Into how many parts organizations are cut; the same in every process, for ever.
pub const PARTITIONS: u16 = 32;

const BATCH: usize = 1_000;

/// What setting runs off needs.
#[derive(Clone)]
pub struct Dependencies {
    /// The log.
    pub log: EventLog,
    /// Whom what persons do may be shown to.
    pub roll: Roll,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What compiles and evaluates filters and matches.
    pub renderer: Renderer,
    /// How runs are carried out.
    pub settings: RunSettings,
}

/// Why nothing is set off any more.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The checkpoints' bucket could not be made.
    #[error(transparent)]
    Log(#[from] event_log::Error),
    /// The log does not answer.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The log cannot be followed.
    #[error(transparent)]
    Tail(#[from] TailError),
    /// A fault of the program's own.
    #[error("failed: {0}")]
    Broken(#[from] tokio::task::JoinError),
}

/// Sets runs off and ends waits until `shutdown`, together with every other process that does.
/// Gives the leases up at the end.
pub async fn run(dependencies: Dependencies, shutdown: CancellationToken) -> Result<(), Error> {
    let Dependencies { log, settings, .. } = &dependencies;
    let leases = Leases::start(log, "triggers", PARTITIONS, settings.lease).await?;
    let ended = Box::pin(watch(dependencies, leases.clone(), shutdown)).await;
    leases.stop().await;
    ended
}

async fn watch(
    dependencies: Dependencies,
    leases: Leases,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let Dependencies {
        log,
        roll,
        clock,
        renderer,
        settings,
    } = dependencies;
    let checkpoints = Checkpoints::open(&log).await?;
    let index = read_workflows(&log).await?;
    let judge = Judge {
        renderer,
        index: RwLock::new(index),
        ledger: Mutex::default(),
        budget: settings.caused_runs,
        log,
        roll,
        clock,
    };
    let watcher = Watcher::new(Arc::new(judge), leases, checkpoints, settings);
    Box::pin(watcher.run(shutdown)).await
}

/// Every workflow as it stands.
async fn read_workflows(log: &EventLog) -> Result<Index, Error> {
    let mut index = Index::default();
    let kinds = [AggregateType::Workflow];
    let mut tail = log.tail(Log::Events, 0, &kinds).await?;
    while !tail.caught_up() {
        for recorded in tail.next(BATCH).await?.readable("triggers") {
            index.workflows.apply(recorded);
        }
    }
    Ok(index)
}
