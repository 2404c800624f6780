//! Taking partitions over: from another process, or from before a restart.

use std::collections::HashMap;
use std::time::Duration;

use event_log::{EventLog, Item, ReadError, TailError};
use futures::future::join_all;
use schemas::delivery::Message;
use schemas::{DeliveryId, Log, Recorded, WebhookId};
use tokio::time::sleep;

use super::attempt;
use super::checkpoint::Checkpoint;
use super::feed::Feed;
use super::work::Retry;
use crate::checkpoints::Checkpoints;
use crate::retry::retry_while;

const BATCH: usize = 1_000;
const AGAIN: Duration = Duration::from_secs(1);

/// Where the partitions that were taken over stand.
#[derive(Debug)]
pub(super) struct TakenOver {
    pub(super) partitions: Vec<(u16, Option<Checkpoint>)>,
    /// The last event: what follows it nobody else has tried to deliver.
    pub(super) events_end: u64,
    /// The last attempt.
    pub(super) attempts_end: u64,
}

/// A delivery that waits to be tried again.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) webhook: WebhookId,
    /// The event's sequence.
    pub(super) sequence: u64,
    pub(super) retry: Retry,
}

/// Reads how far the partitions have come.
pub(super) async fn take_over(
    log: &EventLog,
    feed: Feed,
    checkpoints: &Checkpoints<Checkpoint>,
    partitions: Vec<u16>,
) -> TakenOver {
    let read = partitions.into_iter();
    let read = read.map(async |partition| (partition, checkpoints.read(partition).await));
    let partitions = join_all(read).await;
    TakenOver {
        partitions,
        events_end: end(log, feed.log()).await,
        attempts_end: end(log, Log::Deliveries).await,
    }
}

async fn end(log: &EventLog, of: Log) -> u64 {
    // Asking where the end is can only fail for want of an answer.
    match retry_while(|| log.end(of), |_: &ReadError| true).await {
        Ok(position) => position.sequence(),
        Err(_) => 0,
    }
}

/// Finds the partitions' deliveries that wait to be tried again, as the attempts behind `after`
/// and up to `end` tell.
pub(super) async fn load_retries(
    log: &EventLog,
    feed: Feed,
    is_ours: impl Fn(&WebhookId) -> bool,
    after: u64,
    end: u64,
) -> Vec<Waiting> {
    loop {
        match read_waiting(log, feed, &is_ours, after, end).await {
            Ok(waiting) => return waiting,
            Err(error) => {
                tracing::error!(%error, "Deliveries to be retried cannot be read");
                sleep(AGAIN).await;
            }
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum LoadError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Tail(#[from] TailError),
}

async fn read_waiting(
    log: &EventLog,
    feed: Feed,
    is_ours: &impl Fn(&WebhookId) -> bool,
    after: u64,
    end: u64,
) -> Result<Vec<Waiting>, LoadError> {
    let mut tail = log.tail(Log::Deliveries, after, &[]).await?;
    let mut waiting: HashMap<DeliveryId, Waiting> = HashMap::new();
    while tail.last_sequence() < end && !tail.caught_up() {
        for item in tail.next(BATCH).await?.items {
            if let Item::Event(recorded) = item {
                note(&mut waiting, &recorded, |message| {
                    Feed::of(&message.event_type) == feed && is_ours(&message.webhook_id)
                });
            }
        }
    }
    Ok(waiting.into_values().collect())
}

/// Notes what an event left to do; later events of a delivery go over earlier ones.
fn note(
    waiting: &mut HashMap<DeliveryId, Waiting>,
    recorded: &Recorded,
    concerns_us: impl Fn(&Message) -> bool,
) {
    let Some((message, _)) = attempt::tried(&recorded.event) else {
        return;
    };
    if !concerns_us(message) {
        return;
    }
    match attempt::pending(recorded) {
        Some(retry) => {
            let found = Waiting {
                webhook: message.webhook_id.clone(),
                sequence: message.event_sequence,
                retry,
            };
            waiting.insert(message.delivery_id.clone(), found);
        }
        None => _ = waiting.remove(&message.delivery_id),
    }
}
