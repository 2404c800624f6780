//! Up to where the positions of a partition have been considered.

use event_log::{CheckpointBucket, EventLog};
use schemas::Log;

use crate::checkpoints::Checkpoint;

/// What the keys begin with.
pub(super) const PREFIX: &str = "partition.";

/// The sequence up to which crossings have been told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Through(pub(super) u64);

impl Checkpoint for Through {
    const BUCKET: CheckpointBucket = CheckpointBucket::Geofence;

    type Mark = Self;

    fn mark(&self) -> Self {
        *self
    }

    fn encode(&self, log: &EventLog) -> Vec<u8> {
        log.position(Log::Locations, self.0)
            .to_string()
            .into_bytes()
    }

    fn decode(stored: &[u8], log: &EventLog) -> Option<Self> {
        let text = std::str::from_utf8(stored).ok()?;
        // After a restore all is considered again: what is told already is not told twice.
        let position = log.parse_position(text).ok()?;
        Some(Self(position.sequence()))
    }
}
