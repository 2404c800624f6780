//! The buckets in which those who follow the log note how far they have come.

/// A bucket of checkpoints. What stands there may be older than the truth and is never newer. A
/// restore removes all of them and puts back what the backup holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointBucket {
    /// All that the runner notes.
    Runner,
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
    pub const ALL: [Self; 5] = [
        Self::Runner,
        Self::OldRuns,
        Self::OldTriggers,
        Self::OldWebhooks,
        Self::OldGeofence,
    ];

    /// Its name, to which the log's own prefix is added.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runner => "runner-checkpoints",
            Self::OldRuns => "run-checkpoints",
            Self::OldTriggers => "trigger-checkpoints",
            Self::OldWebhooks => "WEBHOOK_CHECKPOINTS",
            Self::OldGeofence => "PLACE_CHECKPOINTS",
        }
    }
}
