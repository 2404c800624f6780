//! The buckets in which those who follow the log note how far they have come.

/// A bucket of checkpoints. What stands there may be older than the truth and is never newer; of a
/// log that was restored it says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointBucket {
    /// Which runs are open.
    Runs,
    /// How far events were matched, and which waits were open.
    Triggers,
    /// How far each endpoint has been delivered to.
    Webhooks,
    /// How far positions were considered.
    Geofence,
}

impl CheckpointBucket {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Runs, Self::Triggers, Self::Webhooks, Self::Geofence];

    /// Its name, to which the log's own prefix is added.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runs => "run-checkpoints",
            Self::Triggers => "trigger-checkpoints",
            Self::Webhooks => "WEBHOOK_CHECKPOINTS",
            Self::Geofence => "PLACE_CHECKPOINTS",
        }
    }
}
