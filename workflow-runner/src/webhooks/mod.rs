//! Webhooks: every public event, signed and sent to the endpoints that want it.
//!
//! [`dispatcher`] follows the log and gives each wanted event to its endpoint's [`queue`], which
//! decides what is attempted when; a [`sender`] makes one attempt and records it as an event of
//! the delivery, so that what is known of a delivery is a fold of the log. Queues hold sequences
//! only, and a bounded number of them.
//!
//! **At least once, under one id.** A delivery is named by its endpoint and event, the same after
//! any restart. [`checkpoint`] says how far first attempts have been recorded; what lies behind
//! is read from the log again, and asked of the deliveries' log before anything is sent. Which
//! deliveries wait to be tried again it tells by where their last attempts stand ([`open_records`]).
//! Only an attempt that ended between the receiver's answer and its record is made again.
//!
//! **Ownership.** Endpoints are cut into partitions, each served by one process at a time; should
//! two meet in a moment of handing over, the log's expected sequence lets one of them record.
//!
//! **Two streams.** Positions stand apart from all other facts, so a dispatcher of its own
//! delivers them ([`feed`]), to the organizations with a circle that their person is in. What is
//! personal is unsealed for each attempt, and only if the organization still may see it.
//!
//! **An endpoint's end.** Once it is disabled or deleted, deliveries that were tried before and
//! wait to be tried again end as `FAILED`; events that were not tried yet are dropped.

mod attempt;
mod bookkeeping;
mod checkpoint;
mod concurrency;
mod directory;
mod disable;
mod dispatcher;
mod feed;
mod filters;
mod open_records;
mod ownership;
mod partitions;
mod payload;
mod queue;
mod refill;
mod replay;
mod reports;
mod requests;
mod round_robin;
mod schedule;
mod scheduler;
mod secrets;
mod sender;
mod settings;
mod signature;
mod source;
mod takeover;
mod tasks;
mod traced;
mod work;

use std::sync::Arc;

use event_log::{EventLog, ReadError, Tail, TailError};
use schemas::{AggregateType, Log};
use service::Clock;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::checkpoints::{Checkpoints, SPREAD, Saving};
use crate::leases::Leases;
use crate::people::People;
use crate::targets::Targets;
use concurrency::ConcurrencyLimit;
use directory::Directory;
use dispatcher::{Dispatcher, State};
use feed::Feed;
use schedule::Schedule;
use sender::Sender;
use source::Source;
use tasks::Tasks;

pub use settings::WebhookSettings;

const BATCH: usize = 1_000;

/// What delivering needs.
#[derive(Clone)]
pub struct Dependencies {
    /// The event log.
    pub log: EventLog,
    /// Whom what persons do may be shown to.
    pub people: People,
    /// Calls the receivers.
    pub targets: Targets,
    /// To which endpoints is delivered here.
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

/// Positions brought ahead of the dispatcher, in batches.
const AHEAD: usize = 4;

/// Delivers webhooks until `shutdown`, together with every other process that does.
pub async fn run(dependencies: Dependencies, shutdown: CancellationToken) -> Result<(), Error> {
    let log = dependencies.log.clone();
    let limit = ConcurrencyLimit::new(dependencies.settings.total_concurrency);
    let events = {
        let cursor = log.end(Log::Events).await?.sequence();
        let (directory, _) = read_directory(&log).await?;
        let source = Source::Events(log.follow(Log::Events, cursor, &[]).await?);
        dispatcher(
            &dependencies,
            &limit,
            Feed::Events,
            directory,
            source,
            cursor,
        )
        .await?
    };
    let cursor = log.end(Log::Locations).await?.sequence();
    let tail = log.follow(Log::Locations, cursor, &[]).await?;
    let (bring, positions) = mpsc::channel(AHEAD);
    let locations = {
        let (directory, endpoints) = read_directory(&log).await?;
        let source = Source::Locations {
            endpoints: Box::new(endpoints),
            positions,
            waiting: None,
        };
        dispatcher(
            &dependencies,
            &limit,
            Feed::Locations,
            directory,
            source,
            cursor,
        )
        .await?
    };
    let Dependencies { people, clock, .. } = dependencies;
    let stop = shutdown.child_token();
    let bringing = async {
        let bringing = source::bring(tail, people, clock, bring);
        let failed = stop.run_until_cancelled(bringing).await;
        stop.cancel();
        failed.map_or(Ok(()), Err)
    };
    let (events, locations, brought) = tokio::join!(
        Box::pin(until_either_ends(events, &stop)),
        Box::pin(until_either_ends(locations, &stop)),
        Box::pin(bringing)
    );
    events.and(locations).and(brought)?;
    Ok(())
}

/// Runs a dispatcher, and stops the other when it fails.
async fn until_either_ends(
    dispatcher: Dispatcher,
    stop: &CancellationToken,
) -> Result<(), TailError> {
    let ended = Box::pin(dispatcher.run(stop.clone())).await;
    stop.cancel();
    ended
}

async fn dispatcher(
    dependencies: &Dependencies,
    limit: &ConcurrencyLimit,
    feed: Feed,
    directory: Directory,
    source: Source,
    cursor: u64,
) -> Result<Dispatcher, Error> {
    let Dependencies {
        log,
        leases,
        people,
        targets,
        clock,
        settings,
    } = dependencies.clone();
    let (tasks, reports) = Tasks::new();
    let checkpoints = Checkpoints::open(&log, feed.checkpoints()).await?;
    Ok(Dispatcher {
        owned: leases.owned(),
        leases,
        saving: Saving::new(checkpoints, SPREAD),
        directory,
        source,
        cursor,
        reports,
        tasks,
        limit: limit.clone(),
        state: State::default(),
        sender: Arc::new(Sender {
            log,
            feed,
            people,
            targets,
            clock,
            schedule: Schedule::new(settings.retries.clone()),
            timeout: settings.timeout,
        }),
        settings,
    })
}

/// Every endpoint as it stands; the tail goes on from there.
async fn read_directory(log: &EventLog) -> Result<(Directory, Tail), Error> {
    let mut directory = Directory::default();
    let mut tail = log.tail(Log::Events, 0, &[AggregateType::Webhook]).await?;
    while !tail.caught_up() {
        for recorded in tail.next(BATCH).await?.readable("webhooks") {
            directory.apply(recorded);
        }
    }
    Ok((directory, tail))
}
