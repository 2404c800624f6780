//! Checkpoints of how far followers of the log have come: where they are kept, and in which form.

mod envelope;
mod fold;

pub use envelope::{Unusable, decode, encode};
pub use fold::{Encoder, Fold, FoldCheckpoint};

/// A bucket of checkpoints. They may be older than the truth and are never newer. A restore removes
/// all of them, and puts back what the backup holds: the runner's. A fold is built from the log
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointBucket {
    /// All that the runner saves.
    Runner,
    /// Folds, which every process makes for itself.
    Folds,
    /// Which runs are open, as saved by older versions.
    OldRuns,
    /// How far events were matched, and which waits were open, as saved by older versions.
    OldTriggers,
    /// How far each endpoint has been delivered to, as saved by older versions.
    OldWebhooks,
    /// How far positions were considered, as saved by older versions.
    OldGeofence,
}

impl CheckpointBucket {
    /// All buckets.
    pub const ALL: [Self; 6] = [
        Self::Runner,
        Self::Folds,
        Self::OldRuns,
        Self::OldTriggers,
        Self::OldWebhooks,
        Self::OldGeofence,
    ];

    /// Its name, to which the log's own prefix is added.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runner => "runner-checkpoints",
            Self::Folds => "fold-checkpoints",
            Self::OldRuns => "run-checkpoints",
            Self::OldTriggers => "trigger-checkpoints",
            Self::OldWebhooks => "WEBHOOK_CHECKPOINTS",
            Self::OldGeofence => "PLACE_CHECKPOINTS",
        }
    }
}
