//! How far each partition has been judged, and which waits were open there. Whoever takes a
//! partition over reads on from there; without a checkpoint the whole log is judged again, which
//! changes nothing that has been done.

use std::time::Duration;

use async_nats::jetstream::kv;
use event_log::{Error, EventLog, ReadError};
use futures::future::join_all;
use futures::{StreamExt as _, stream};
use schemas::{Log, Recorded};
use serde::de::DeserializeOwned;
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
}

/// All that is noted of a partition.
#[derive(Clone, Debug)]
pub(super) struct Notes {
    pub(super) partition: u16,
    pub(super) note: Note,
    pub(super) causes: Vec<Noted>,
}

/// What causes led to, as it is noted.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Causes {
    epoch: u32,
    noted: Vec<Noted>,
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
        let note: Note = self.read(&key(partition)).await;
        if note.epoch == self.epoch {
            note
        } else {
            Note::default()
        }
    }

    /// What the causes of a partition's organizations had led to.
    pub(super) async fn causes(&self, partition: u16) -> Vec<Noted> {
        let causes: Causes = self.read(&causes_key(partition)).await;
        if causes.epoch == self.epoch {
            causes.noted
        } else {
            Vec::new()
        }
    }

    /// Asks until there is an answer.
    async fn read<T: DeserializeOwned + Default>(&self, key: &str) -> T {
        loop {
            match timeout(PATIENCE, self.bucket.get(key)).await {
                Ok(Ok(found)) => {
                    let read = found.and_then(|found| serde_json::from_slice(&found).ok());
                    return read.unwrap_or_default();
                }
                Ok(Err(error)) => {
                    tracing::warn!(key, %error, "A checkpoint of triggers cannot be read");
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
    pub(super) fn note(&self, through: u64, waits: &[u64]) -> Note {
        let mut before = 0;
        let further = waits
            .iter()
            .map(|at| at - std::mem::replace(&mut before, *at));
        Note {
            epoch: self.epoch,
            through,
            waits: further.collect(),
        }
    }

    /// Notes partitions; one that does not get through keeps its older note. What causes led to is
    /// noted first: how far all was judged must never be newer.
    pub(super) async fn save(&self, notes: Vec<Notes>) {
        let saved = notes.into_iter().map(async |notes| {
            let Notes {
                partition,
                note,
                causes,
            } = notes;
            let causes = Causes {
                epoch: self.epoch,
                noted: causes,
            };
            let kept = self.put(causes_key(partition), &causes).await;
            if kept {
                self.put(key(partition), &note).await;
            }
        });
        join_all(saved).await;
    }

    async fn put(&self, key: String, note: &impl Serialize) -> bool {
        let Ok(note) = serde_json::to_vec(note) else {
            return false;
        };
        if note.len() > MAX_BYTES {
            tracing::warn!(key, "Too much is open to be noted");
            return false;
        }
        match timeout(PATIENCE, self.bucket.put(&key, note.into())).await {
            Ok(Ok(_)) => true,
            Ok(Err(error)) => {
                tracing::debug!(key, %error, "A checkpoint of triggers was not kept");
                false
            }
            Err(_) => false,
        }
    }
}

fn key(partition: u16) -> String {
    format!("p-{partition}")
}

fn causes_key(partition: u16) -> String {
    format!("c-{partition}")
}
