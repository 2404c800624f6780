//! Webhooks: every public event, signed and sent to the endpoints that want it.
//!
//! [`dispatcher`] follows the log and gives each wanted event to its endpoint's [`lane`], which
//! decides what is attempted when; a [`courier`] makes one attempt and records it as an event of
//! the delivery, so that what is known of a delivery is a fold of the log. Lanes hold sequences
//! only, and a bounded number of them.
//!
//! **At least once, under one id.** A delivery is named by its endpoint and event, the same after
//! any restart. [`checkpoint`] says how far first attempts have been recorded; what lies behind
//! is read from the log again, and asked of the deliveries' log before anything is sent. Only an
//! attempt that ended between the receiver's answer and its record is made again.
//!
//! **Ownership.** Endpoints are cut into partitions, each served by one process at a time; should
//! two meet in a moment of handing over, the log's expected sequence lets one of them record.
//!
//! **An endpoint's end.** Once it is disabled or deleted, deliveries that were tried before and
//! wait to be tried again end as `FAILED`; events that were not tried yet are dropped.

mod attempt;
mod bookkeeping;
mod checkpoint;
mod courier;
mod directory;
mod disable;
mod dispatcher;
mod lane;
mod ownership;
mod parcel;
mod refill;
mod roster;
mod schedule;
mod settings;
mod signature;
mod takeover;
mod tasks;
mod tenure;

use std::sync::Arc;

use event_log::{EventLog, Item, ReadError, TailError};
use schemas::{AggregateType, Log};
use service::Clock;
use tokio_util::sync::CancellationToken;

use crate::leases::Leases;
use crate::targets::Targets;
use checkpoint::Checkpoints;
use courier::Courier;
use directory::Directory;
use dispatcher::{Dispatcher, State};
use schedule::Schedule;
use tasks::Tasks;

pub use settings::WebhookSettings;

/// The name under which processes share endpoints, for [`Leases::start`].
pub const LEASES: &str = "webhooks";

const BATCH: usize = 1_000;

/// What delivering needs.
#[derive(Clone)]
pub struct Dependencies {
    /// The event log.
    pub log: EventLog,
    /// Calls the receivers.
    pub targets: Targets,
    /// Which partitions of endpoints are ours.
    pub leases: Leases,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// How to deliver.
    pub settings: WebhookSettings,
}

/// Why delivering could not begin or ended.
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
}

/// Delivers webhooks until `shutdown`, and gives the leases up at the end.
pub async fn run(dependencies: Dependencies, shutdown: CancellationToken) -> Result<(), Error> {
    let Dependencies {
        log,
        targets,
        leases,
        clock,
        settings,
    } = dependencies;
    let cursor = log.end(Log::Events).await?.sequence();
    let (tasks, reports) = Tasks::new();
    let dispatcher = Dispatcher {
        owned: leases.owned(),
        leases,
        checkpoints: Checkpoints::open(&log).await?,
        directory: read_directory(&log).await?,
        tail: log.tail(Log::Events, cursor, &[]).await?,
        cursor,
        reports,
        tasks,
        state: State::default(),
        courier: Arc::new(Courier {
            log,
            targets,
            clock,
            schedule: Schedule::new(settings.retries.clone()),
            timeout: settings.timeout,
        }),
        settings,
    };
    Ok(Box::pin(dispatcher.run(shutdown)).await?)
}

async fn read_directory(log: &EventLog) -> Result<Directory, Error> {
    let mut directory = Directory::default();
    let mut tail = log.tail(Log::Events, 0, &[AggregateType::Webhook]).await?;
    while !tail.caught_up() {
        for item in tail.next(BATCH).await?.items {
            match item {
                Item::Event(recorded) => _ = directory.apply(&recorded),
                Item::Undecodable {
                    sequence, reason, ..
                } => {
                    tracing::error!(sequence, reason, "An event of a webhook cannot be read");
                }
            }
        }
    }
    Ok(directory)
}
