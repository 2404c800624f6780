//! Events become read models.
//!
//! Each projection folds the events of its aggregates into its own tables, thousands of events in
//! one transaction that also moves its position: an event counts once however often it is
//! delivered. One projector per log is active, the others stand by. See [`run`].

mod batch;
mod batch_pause;
mod bulk_throttle;
mod checkpoint;
mod connect;
mod copy;
mod dead_letters;
mod empty;
mod error;
mod feed;
mod forgetting;
mod growth;
mod leadership;
mod list;
mod operations;
mod projection;
mod reader;
mod rebuild;
mod replay;
mod retry;
mod settings;
mod skips;
mod status;
mod sweep;
mod traced;
mod verify;
mod writers;

use std::sync::Arc;
use std::time::Duration;

use event_log::EventLog;
use service::Clock;
use service::health::Readiness;
use sqlx::PgPool;
use sqlx::migrate::MigrateError;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::connect::Connector;
use crate::feed::Feed;
use crate::status::Status;

pub use bulk_throttle::Pace;
pub use checkpoint::log_name;
pub use copy::idle::{CopiesAway, keep_copies_away};
pub use copy::{Progress, Tell};
pub use dead_letters::repair::{Repaired, retry_letter, skip_letter};
pub use dead_letters::{DeadLetter, dead_letters};
pub use empty::empty;
pub use error::{Error, RepairError};
pub use forgetting::{
    drop_dead_letters_before, drop_deletion, drop_what_is_kept_of, left_of_record, rows_about,
    rows_of_record,
};
pub use list::{ListError, ProjectionPosition, list};
pub use rebuild::{Rebuilt, rebuild};
pub use settings::{BATCH, ProjectorSettings, SHARE};
pub use skips::{Skipped, skipped_events};
pub use verify::{Verified, verify};

/// How often the end of the log is queried, for the lag metrics.
const LAG_EVERY: Duration = Duration::from_secs(1);

/// How often an unavailable database is retried at startup.
const DATABASE_EVERY: Duration = Duration::from_secs(1);

/// Dependencies of the projector.
#[derive(Clone)]
pub struct Dependencies {
    /// The log that events are read from.
    pub log: EventLog,
    /// The database of the read models, as the role that writes.
    pub pool: PgPool,
    /// Decides which positions and deliveries are too old.
    pub clock: Arc<dyn Clock>,
    /// Settings of the projector.
    pub settings: ProjectorSettings,
    /// Reports whether the projector works.
    pub readiness: Readiness,
}

/// Keeps the read models up to date with the log until `shutdown`. Its checks are added at once.
///
/// It migrates the database first. It waits for a database or log that is unavailable.
///
/// # Errors
/// If the database cannot be migrated although it is available.
pub fn run(
    deps: Dependencies,
    shutdown: CancellationToken,
) -> impl Future<Output = Result<(), Error>> + Send {
    let feeds = feeds(&deps);
    add_checks(&deps, &feeds);
    keep_up(deps, feeds, shutdown)
}

async fn keep_up(
    deps: Dependencies,
    feeds: Vec<Feed>,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    migrate(&deps.pool, &shutdown).await?;
    let mut tasks = JoinSet::new();
    tasks.spawn(sweep::keep_sweeping(deps.clone(), shutdown.clone()));
    let names = projection::names(&deps.log);
    let sweeping = copy::idle::keep_sweeping(deps.pool.clone(), names, shutdown.clone());
    tasks.spawn(sweeping);
    let growth = growth::report_sizes(deps.log.clone(), deps.pool.clone(), shutdown.clone());
    tasks.spawn(growth);
    for queue in operations::Queue::ALL {
        let performing = operations::keep_performing(deps.clone(), queue, shutdown.clone());
        tasks.spawn(performing);
    }
    for feed in feeds {
        tasks.spawn(watch_lag(feed.clone(), shutdown.clone()));
        tasks.spawn(feed.run(shutdown.clone()));
    }
    while let Some(ended) = tasks.join_next().await {
        ended?;
    }
    Ok(())
}

fn feeds(deps: &Dependencies) -> Vec<Feed> {
    projection::LOGS
        .into_iter()
        .map(|log| Feed {
            log,
            event_log: deps.log.clone(),
            connector: Connector::new(&deps.pool, deps.settings.takeover),
            pool: deps.pool.clone(),
            batch: deps.settings.batch,
            writers: deps.settings.writers,
            status: Status::new(log),
        })
        .collect()
}

fn add_checks(deps: &Dependencies, feeds: &[Feed]) {
    let statuses = || feeds.iter().map(|feed| feed.status.clone());
    let working: Vec<_> = statuses().collect();
    let check = move || std::future::ready(all_well(working.iter().map(Status::check)));
    deps.readiness.add("projector/projections", check);
    let parking: Vec<_> = statuses().collect();
    let check = move || std::future::ready(all_well(parking.iter().map(Status::check_parked)));
    deps.readiness.add_warning("projector/dead_letters", check);
    let log = deps.log.clone();
    deps.readiness.add_log(move || log.is_connected());
}

fn all_well(checks: impl Iterator<Item = Result<(), String>>) -> Result<(), String> {
    let failed: Vec<_> = checks.filter_map(Result::err).collect();
    failed.is_empty().then_some(()).ok_or(failed.join("; "))
}

/// Waits for an unavailable database; several projectors may start at once.
///
/// A migration is never cancelled half-way: its connection would return to the pool with a lock
/// that blocks all other migrations.
async fn migrate(pool: &PgPool, shutdown: &CancellationToken) -> Result<(), MigrateError> {
    while !shutdown.is_cancelled() {
        match service::database::migrate(pool).await {
            Err(MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _))
                if service::database::is_unavailable(&error) =>
            {
                tracing::warn!(%error, "Waiting for the database");
                shutdown.run_until_cancelled(sleep(DATABASE_EVERY)).await;
            }
            done => return done,
        }
    }
    Ok(())
}

async fn watch_lag(feed: Feed, shutdown: CancellationToken) {
    let watching = async {
        loop {
            if let Ok(end) = feed.event_log.end(feed.log).await {
                feed.status.log_ends_at(end.sequence());
            }
            sleep(LAG_EVERY).await;
        }
    };
    shutdown.run_until_cancelled(watching).await;
}
