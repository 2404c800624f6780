//! How far each partition has been judged, and which waits were open there. Whoever takes a
//! partition over reads on from there; without a checkpoint the whole log is judged again, which
//! changes nothing that has been done.

use std::time::Duration;

use async_nats::jetstream::kv;
use event_log::{Error, EventLog, ReadError};
use futures::future::join_all;
use futures::{StreamExt as _, stream};
use schemas::{Log, Recorded};
use serde::{Deserialize, Serialize};
use tokio::time::{sleep, timeout};

use super::ledger::Noted;

const BUCKET: &str = "trigger-checkpoints";
/// What one value of a bucket may hold, with room for what surrounds it.
const MAX_BYTES: usize = 900 * 1024;
const PATIENCE: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(250);
/// Waits that are looked up at the same time.
const AT_ONCE: usize = 32;

/// What is noted of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    /// Sequences mean nothing after a restore.
    epoch: u32,
    /// Every event up to here has been judged.
    pub(super) through: u64,
    /// Where the open waits began, each as the difference from the one before.
    waits: Vec<u64>,
    /// What causes had led to by then. It stands in one note with how far all was judged, so that
    /// neither is ever older than the other.
    #[serde(default)]
    pub(super) causes: Vec<Noted>,
}

/// Keeps checkpoints.
#[derive(Clone)]
pub(super) struct Checkpoints {
    log: EventLog,
    bucket: kv::Store,
    epoch: u32,
}

impl Checkpoints {
    pub(super) async fn open(log: &EventLog) -> Result<Self, Error> {
        Ok(Self {
            log: log.clone(),
            bucket: log.bucket(BUCKET, None).await?,
            epoch: log.position(Log::Events, 0).epoch(),
        })
    }

    /// The partition as it was noted last, and the waits that were open; asks until there is an
    /// answer, for without one events might be judged as if nobody waited.
    pub(super) async fn load(&self, partition: u16) -> (Note, Vec<Recorded>) {
        let note = self.note_of(partition).await;
        let mut at = 0;
        let further = note.waits.iter();
        let sequences: Vec<u64> = further
            .map(|further| {
                at += further;
                at
            })
            .collect();
        let waits = stream::iter(sequences).map(|sequence: u64| self.wait_at(sequence));
        let waits: Vec<Option<Recorded>> = waits.buffered(AT_ONCE).collect().await;
        let waits = waits.into_iter().flatten().collect();
        (note, waits)
    }

    /// Up to where a partition has been judged for sure.
    pub(super) async fn through(&self, partition: u16) -> u64 {
        self.note_of(partition).await.through
    }

    async fn note_of(&self, partition: u16) -> Note {
        loop {
            match timeout(PATIENCE, self.bucket.get(key(partition))).await {
                Ok(Ok(found)) => {
                    let note = found.and_then(|found| serde_json::from_slice::<Note>(&found).ok());
                    let note = note.filter(|note| note.epoch == self.epoch);
                    return note.unwrap_or_default();
                }
                Ok(Err(error)) => {
                    tracing::warn!(partition, %error, "A checkpoint of triggers cannot be read");
                }
                Err(_) => {}
            }
            sleep(AGAIN).await;
        }
    }

    async fn wait_at(&self, sequence: u64) -> Option<Recorded> {
        loop {
            match self.log.get(Log::Events, sequence).await {
                Ok(found) => return found,
                Err(ReadError::Unavailable(_)) => sleep(AGAIN).await,
                Err(error) => {
                    tracing::error!(sequence, %error, "A wait for an event cannot be read");
                    return None;
                }
            }
        }
    }

    /// What is to be noted of a partition.
    pub(super) fn note(&self, through: u64, waits: &[u64], causes: Vec<Noted>) -> Note {
        let mut before = 0;
        let further = waits
            .iter()
            .map(|at| at - std::mem::replace(&mut before, *at));
        Note {
            epoch: self.epoch,
            through,
            waits: further.collect(),
            causes,
        }
    }

    /// Notes partitions; one that does not get through keeps its older note.
    pub(super) async fn save(&self, notes: Vec<(u16, Note)>) {
        let saved = notes.into_iter().map(|(partition, note)| async move {
            let Ok(note) = serde_json::to_vec(&note) else {
                return;
            };
            if note.len() > MAX_BYTES {
                tracing::warn!(partition, "Too many waiting steps for a checkpoint");
                return;
            }
            let put = self.bucket.put(key(partition), note.into());
            if let Ok(Err(error)) = timeout(PATIENCE, put).await {
                tracing::debug!(partition, %error, "A checkpoint of triggers was not kept");
            }
        });
        join_all(saved).await;
    }
}

fn key(partition: u16) -> String {
    format!("p-{partition}")
}
