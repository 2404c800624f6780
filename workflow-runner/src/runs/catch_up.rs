//! Taking partitions over: their checkpoints, and the events since.

use std::collections::BTreeMap;
use std::time::Duration;

use event_log::{EventLog, Follower, Item};
use schemas::{AggregateType, Log};
use tokio::time::sleep;

use super::held::{Held, HeldTriggers};
use super::index::{Change, Partition, RunKey, run_of};
use super::turn::Turn;
use crate::checkpoints::Checkpoints;
use crate::leases::{Round, partition_of};

const EVENTS_AT_ONCE: usize = 1_000;
const AGAIN: Duration = Duration::from_millis(250);

/// Partitions by their number, folded up to the same sequence in the log or further.
pub(super) type Folded = BTreeMap<u16, Partition>;

/// The state of partitions that were taken over.
pub(super) struct CaughtUp {
    /// When they were gained.
    pub(super) round: Round,
    pub(super) folded: Folded,
    /// Triggers of untouched runs that were triggered since the checkpoints.
    pub(super) triggers: HeldTriggers,
    /// Continues from there.
    pub(super) tail: Follower,
}

/// Folds partitions up to the log's end. Retries until it succeeds, as no work is possible before.
pub(super) async fn catch_up(
    log: EventLog,
    checkpoints: Checkpoints<Partition>,
    (round, wanted): (Round, Vec<u16>),
) -> CaughtUp {
    let mut folded = Folded::new();
    for partition in wanted {
        let noted = checkpoints.read(partition).await;
        folded.insert(partition, noted.unwrap_or_default());
    }
    let mut triggers = HeldTriggers::default();
    loop {
        match fold_to_end(&log, &mut folded, &mut triggers).await {
            Ok(tail) => {
                return CaughtUp {
                    round,
                    folded,
                    triggers,
                    tail,
                };
            }
            Err(error) => {
                tracing::warn!(error, "Cannot follow the log to take over runs");
                sleep(AGAIN).await;
            }
        }
    }
}

async fn fold_to_end(
    log: &EventLog,
    folded: &mut Folded,
    triggers: &mut HeldTriggers,
) -> Result<Follower, String> {
    let after = folded.values().map(|partition| partition.folded_to).min();
    let after = after.unwrap_or_default();
    let tail = log.follow(Log::Events, after, &[AggregateType::Run]).await;
    let mut tail = tail.map_err(|error| error.to_string())?;
    while !tail.caught_up() {
        let batch = tail.next(EVENTS_AT_ONCE).await;
        let batch = batch.map_err(|error| error.to_string())?;
        for item in batch.items {
            take_in(folded, triggers, item);
        }
        for partition in folded.values_mut() {
            partition.folded_to = partition.folded_to.max(batch.last_sequence);
        }
    }
    Ok(tail)
}

fn take_in(folded: &mut Folded, triggers: &mut HeldTriggers, item: Item) {
    match item {
        Item::Event(recorded) => {
            let number = partition_of(&recorded.stream.id);
            if let Some(partition) = folded.get_mut(&number)
                && partition.folded_to < recorded.sequence
            {
                let key = RunKey::of(&recorded.stream.id);
                match partition.fold(key, &recorded) {
                    Change::Ready => {
                        if let Some(held) = Held::of(&recorded) {
                            triggers.put(key, held);
                        }
                    }
                    Change::Nothing | Change::Waits(_) => {}
                    Change::Ended => drop(triggers.take(key)),
                }
            }
        }
        Item::Undecodable {
            sequence, subject, ..
        } => {
            if let Some((org, id)) = run_of(&subject)
                && let Some(partition) = folded.get_mut(&partition_of(id))
                && partition.folded_to < sequence
            {
                let key = RunKey::of(id);
                partition.fold_unreadable(key, sequence, Turn::of_org(&org));
                triggers.take(key);
            }
        }
    }
}
