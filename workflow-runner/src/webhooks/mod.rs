//! Webhooks: every public event, signed and sent to the endpoints that want it.
//!
//! [`dispatcher`] follows the log and passes each wanted event to its endpoint's [`queue`], which
//! decides what is attempted when. A [`sender`] makes one attempt and records it as an event of the
//! delivery, so that the state of a delivery is a fold of the log. Queues hold only sequences, and
//! a bounded number of them.
//!
//! **At least once, under one id.** A delivery's id is derived from its endpoint and event, the
//! same after any restart. [`checkpoint`] records how far first attempts have been recorded; what
//! comes after is read from the log again, and looked up in the deliveries' log before anything is
//! sent. Deliveries that wait for a retry are listed by the sequences of their last attempts
//! ([`open_records`]). Only an attempt interrupted between the receiver's response and its record
//! is repeated.
//!
//! **Ownership.** Endpoints are divided into partitions, each served by one process at a time;
//! should two overlap during a handover, the log's expected sequence lets only one of them record.
//!
//! **Two streams.** Positions are kept apart from all other facts, so a dispatcher of its own
//! delivers them ([`feed`]), to the organizations with a circle that their person is in. Personal
//! data is unsealed for each attempt, and only if the organization may still see it.
//!
//! **An endpoint's end.** Once it is disabled or deleted, deliveries that were tried before and
//! wait for a retry end as `FAILED`; events that were not tried yet are dropped.

mod attempt;
mod checkpoint;
mod checkpointing;
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

/// Dependencies of webhook delivery.
#[derive(Clone)]
pub struct Dependencies {
    /// The event log.
    pub log: EventLog,
    /// Decides who may see what persons do.
    pub people: People,
    /// Calls the receivers.
    pub targets: Targets,
    /// The endpoints that this process delivers to.
    pub leases: Leases,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Delivery settings.
    pub settings: WebhookSettings,
}

/// An error that prevents or ends delivery.
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
}

/// Batches of positions that are read ahead of the dispatcher.
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

/// The current state of every endpoint, and a tail that continues from there.
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
