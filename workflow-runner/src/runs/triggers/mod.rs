//! Sets runs off by events and schedules, and ends the waits of steps for events.
//!
//! A [`dispatcher`] follows the log. Organizations are assigned to partitions, and a partition is
//! matched by one process at a time: [`matcher`] decides which workflows an event sets off, and
//! [`end_wait`] ends the waits that it satisfies. A run that an event or a time sets off derives
//! its id from the workflow and that event or time, so that it begins once, however often and by
//! however many processes the event is matched.
//!
//! **Nothing is missed.** A [`checkpoint`] records up to where all events of a partition have been
//! matched, and which waits were open; it never passes an unmatched event. A wait begins with its
//! own event in the log, so the order of the log determines which events came after it.
//!
//! **What one cause leads to is bounded.** What runs do may set off further runs; [`cause_counts`]
//! counts them for each event or run from outside that they go back to.
//!
//! **Nobody's data is left behind.** A run that is given what an event says of a person is noted for
//! them first ([`about`]), so that it can be forgotten with them.
//!
//! **Nobody waits for others.** Each organization has a queue ([`org_queues`]); queues take turns.
//! What the clock sets off is appended for each organization by itself.

mod about;
mod cause_counts;
mod checkpoint;
mod dispatcher;
mod end_wait;
mod event_visibility;
mod matcher;
mod missed_events;
mod org_queues;
mod runs;
mod timers;
mod waits;
mod workflows;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use event_log::{EventLog, ReadError, TailError};
use schemas::{AggregateType, Log};
use service::Clock;
use service::health::Readiness;
use tokio_util::sync::CancellationToken;

use super::renderer::Renderer;
use super::{OpenRuns, RunSettings};
use crate::checkpoints::{Checkpoints, Kind};
use crate::leases::Leases;
use crate::people::People;
use dispatcher::Dispatcher;
use matcher::Matcher;
pub(super) use missed_events::{ExpiredWait, MissedEventSearch};

const BATCH: usize = 1_000;

/// The name of the triggers' readiness check.
pub(crate) const CHECK: &str = "workflow-runner/triggers";

/// Dependencies of the triggers.
#[derive(Clone)]
pub struct Dependencies {
    /// The log.
    pub log: EventLog,
    /// The partitions whose workflows are set off here.
    pub leases: Leases,
    /// To whom the activity of persons may be shown.
    pub people: People,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Where this part reports whether it is ready.
    pub readiness: Readiness,
    /// Compiles and evaluates filters and matches.
    pub renderer: Renderer,
    /// The settings.
    pub settings: RunSettings,
    /// Where open runs are counted.
    pub open_runs: OpenRuns,
}

/// Why triggering has ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The checkpoints' bucket could not be created.
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
pub async fn run(dependencies: Dependencies, shutdown: CancellationToken) -> Result<(), Error> {
    let following = announce(&dependencies.readiness);
    let shown = Arc::clone(&following);
    let ended = Box::pin(watch(dependencies, shown, shutdown)).await;
    following.store(false, Ordering::Relaxed);
    ended
}

async fn watch(
    dependencies: Dependencies,
    following: Arc<AtomicBool>,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let Dependencies {
        log,
        leases,
        people,
        clock,
        renderer,
        settings,
        open_runs,
        ..
    } = dependencies;
    let checkpoints = Checkpoints::open(&log, Kind::Triggers).await?;
    let matcher = Matcher {
        renderer,
        index: RwLock::default(),
        cause_counts: Mutex::default(),
        match_notices: Mutex::default(),
        budget: settings.caused_runs,
        open_runs,
        log,
        people,
        clock,
    };
    let listed_to = read_workflows(&matcher, 0).await?;
    let matcher = (Arc::new(matcher), listed_to);
    let dispatcher = Dispatcher::new(matcher, leases, checkpoints, settings, following);
    Box::pin(dispatcher.run(shutdown)).await
}

/// Registers the readiness check; the returned flag says whether events are currently matched.
fn announce(readiness: &Readiness) -> Arc<AtomicBool> {
    let following = Arc::new(AtomicBool::new(false));
    let shown = Arc::clone(&following);
    readiness.add(CHECK, move || {
        let follows = shown.load(Ordering::Relaxed);
        async move {
            follows
                .then_some(())
                .ok_or_else(|| "not matched at the moment".to_owned())
        }
    });
    following
}

/// Reads the workflows saved after a sequence in the log, up to its end; returns the sequence of the
/// last one.
async fn read_workflows(matcher: &Matcher, after: u64) -> Result<u64, Error> {
    let kinds = [AggregateType::Workflow];
    let mut tail = matcher.log.tail(Log::Events, after, &kinds).await?;
    while !tail.caught_up() {
        let batch = tail.next(BATCH).await?;
        matcher.write(|index| {
            for recorded in batch.readable("triggers") {
                index.workflows.apply(recorded);
            }
        });
    }
    Ok(tail.last_sequence())
}
