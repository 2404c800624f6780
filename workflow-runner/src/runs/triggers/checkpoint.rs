//! How far each partition has been matched, and which waits were open there. Whoever takes a
//! partition over reads on from there; without a checkpoint the whole log is matched again, which
//! changes nothing that has been done.

use event_log::{CheckpointBucket, EventLog, ReadError};
use futures::{StreamExt as _, stream};
use schemas::{Log, Recorded};
use serde::{Deserialize, Serialize};

use super::cause_counts::Noted;
use crate::checkpoints::Checkpoint;
use crate::retry::retry_while;
use crate::runs::checkpoint::epoch;

/// Waits that are looked up at the same time.
const AT_ONCE: usize = 32;

/// What is noted of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    /// Sequences mean nothing after a restore.
    epoch: u32,
    /// Every event up to here has been matched.
    pub(super) through: u64,
    /// Where the open waits began, each as the difference from the one before.
    waits: Vec<u64>,
    /// What causes had led to by then. It stands in one note with how far all was matched, so that
    /// neither is ever older than the other.
    #[serde(default)]
    pub(super) causes: Vec<Noted>,
}

impl Note {
    /// What is to be noted of a partition.
    pub(super) fn new(log: &EventLog, through: u64, waits: &[u64], causes: Vec<Noted>) -> Self {
        let mut before = 0;
        let further = waits
            .iter()
            .map(|at| at - std::mem::replace(&mut before, *at));
        Self {
            epoch: epoch(log),
            through,
            waits: further.collect(),
            causes,
        }
    }

    /// The waits that were open; asks until there is an answer, for without one events might be
    /// matched as if nobody waited.
    pub(super) async fn waits(&self, log: &EventLog) -> Vec<Recorded> {
        let mut at = 0;
        let sequences: Vec<u64> = self
            .waits
            .iter()
            .map(|further| {
                at += further;
                at
            })
            .collect();
        let waits = stream::iter(sequences).map(|sequence| wait_at(log, sequence));
        let waits: Vec<Option<Recorded>> = waits.buffered(AT_ONCE).collect().await;
        waits.into_iter().flatten().collect()
    }
}

async fn wait_at(log: &EventLog, sequence: u64) -> Option<Recorded> {
    let found = retry_while(|| log.get(Log::Events, sequence), ReadError::passes).await;
    found
        .inspect_err(
            |error| tracing::error!(sequence, %error, "A wait for an event cannot be read"),
        )
        .ok()?
}

impl Checkpoint for Note {
    const BUCKET: CheckpointBucket = CheckpointBucket::Triggers;

    type Mark = Self;

    fn mark(&self) -> Self {
        self.clone()
    }

    fn encode(&self, _log: &EventLog) -> Vec<u8> {
        // Plain numbers and ids have a JSON form.
        serde_json::to_vec(self).unwrap_or_default()
    }

    fn decode(stored: &[u8], log: &EventLog) -> Option<Self> {
        let note: Self = serde_json::from_slice(stored).ok()?;
        (note.epoch == epoch(log)).then_some(note)
    }
}
