//! What those who follow the log note of how far they have come: where it is kept, and in which
//! form.

mod envelope;
mod fold;

pub use envelope::{Unusable, decode, encode};
pub use fold::{Encoder, Fold, FoldCheckpoint};

/// A bucket of checkpoints. What stands there may be older than the truth and is never newer. A
/// restore removes all of them, and puts back what the backup holds: the runner's. A fold is made
/// of the log again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointBucket {
    /// All that the runner notes.
    Runner,
    /// What every process folds for itself.
    Folds,
    /// Which runs are open, as older versions noted it.
    OldRuns,
    /// How far events were matched, and which waits were open, as older versions noted it.
    OldTriggers,
    /// How far each endpoint has been delivered to, as older versions noted it.
    OldWebhooks,
    /// How far positions were considered, as older versions noted it.
    OldGeofence,
}

impl CheckpointBucket {
    /// All there are.
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
