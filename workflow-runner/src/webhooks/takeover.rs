//! Taking over partitions: from another process, or from before a restart.

use std::collections::HashMap;
use std::time::Duration;

use event_log::{EventLog, Item, ReadError, TailError};
use futures::future::join_all;
use futures::{StreamExt as _, stream};
use schemas::delivery::Message;
use schemas::{DeliveryId, Log, Recorded, WebhookId};
use tokio::time::sleep;

use super::attempt;
use super::checkpoint::Checkpoint;
use super::feed::Feed;
use super::open_records::OpenRecords;
use super::work::Retry;
use crate::checkpoints::Checkpoints;
use crate::retry::retry_while;

const BATCH: usize = 1_000;
/// Number of deliveries that are queried concurrently.
const SIDE_BY_SIDE: usize = 32;
const AGAIN: Duration = Duration::from_secs(1);

/// State of the partitions that were taken over.
#[derive(Debug)]
pub(super) struct TakenOver {
    pub(super) partitions: Vec<(u16, Option<Checkpoint>)>,
    /// The sequence of the last event: no other process has tried to deliver later ones.
    pub(super) events_end: u64,
    /// The sequence of the last attempt.
    pub(super) attempts_end: u64,
}

/// A delivery that waits for a retry.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) webhook: WebhookId,
    /// The event's sequence.
    pub(super) sequence: u64,
    pub(super) retry: Retry,
}

/// Reads the checkpoints of the partitions.
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
    // Querying the end can only fail for lack of a response.
    match retry_while(|| log.end(of), |_: &ReadError| true).await {
        Ok(position) => position.sequence(),
        Err(_) => 0,
    }
}

/// Waiting deliveries that were found.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) waiting: Vec<Waiting>,
    /// How many events were read to find them.
    pub(super) read: usize,
}

/// Finds the partitions' deliveries that wait for a retry, according to their attempts up to `end`.
pub(super) async fn load_retries(
    log: &EventLog,
    feed: Feed,
    is_ours: impl Fn(&WebhookId) -> bool + Sync,
    open: &OpenRecords,
    end: u64,
) -> Loaded {
    let concerns_us =
        |message: &Message| Feed::of(&message.event_type) == feed && is_ours(&message.webhook_id);
    loop {
        match read_waiting(log, &concerns_us, open, end).await {
            Ok(loaded) => return loaded,
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
    concerns_us: &(impl Fn(&Message) -> bool + Sync),
    open: &OpenRecords,
    end: u64,
) -> Result<Loaded, LoadError> {
    let mut waiting: HashMap<DeliveryId, Waiting> = HashMap::new();
    let mut read = 0;
    if open.after() < end {
        let mut tail = log.tail(Log::Deliveries, open.after(), &[]).await?;
        while tail.last_sequence() < end && !tail.caught_up() {
            let batch = tail.next(BATCH).await?;
            read += batch.items.len();
            for recorded in batch.items.iter().filter_map(Item::event) {
                note(&mut waiting, recorded, concerns_us);
            }
        }
    }
    // Queried afterwards, they cannot be older than what was just read.
    let lasts = stream::iter(open.named().to_vec()).map(|record| last_event(log, record));
    let mut lasts = lasts.buffer_unordered(SIDE_BY_SIDE);
    while let Some(last) = lasts.next().await {
        read += 1;
        if let Some(recorded) = last {
            note(&mut waiting, &recorded, concerns_us);
        }
    }
    Ok(Loaded {
        waiting: waiting.into_values().collect(),
        read,
    })
}

/// The last event of the delivery that has an event at `record`: an attempt in progress when the
/// checkpoint was made may have been recorded since, and before the range that is read. `None` if
/// there is none any more, or none that can be read.
async fn last_event(log: &EventLog, record: u64) -> Option<Recorded> {
    let read = async || {
        let named = log.get(Log::Deliveries, record).await?;
        match named {
            Some(named) => log.last(&named.stream).await,
            None => Ok(None),
        }
    };
    let last = retry_while(read, ReadError::passes).await;
    last.unwrap_or_else(|error| {
        tracing::error!(record, %error, "A delivery to be retried cannot be read");
        None
    })
}

/// Records what an event leaves to do; later events of a delivery replace earlier ones.
fn note(
    waiting: &mut HashMap<DeliveryId, Waiting>,
    recorded: &Recorded,
    concerns_us: &impl Fn(&Message) -> bool,
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

#[cfg(test)]
#[path = "takeover_tests.rs"]
mod tests;
