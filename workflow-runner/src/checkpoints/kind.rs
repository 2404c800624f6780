//! The kinds of checkpoints.

use schemas::Log;

/// A part of the runner that saves the progress of its partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Carries out runs.
    Runs,
    /// Matches events with workflows and waits.
    Triggers,
    /// Delivers every fact but positions.
    Webhooks,
    /// Delivers positions.
    LocationWebhooks,
    /// Records crossings.
    Geofence,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Triggers => "triggers",
            Self::Webhooks => "webhooks",
            Self::LocationWebhooks => "location-webhooks",
            Self::Geofence => "geofence",
        }
    }

    /// The key of a partition.
    pub(super) fn key(self, partition: u16) -> String {
        format!("{}.{partition}", self.name())
    }

    /// The stream that its positions belong to.
    pub(super) fn log(self) -> Log {
        match self {
            Self::Runs | Self::Triggers | Self::Webhooks => Log::Events,
            Self::LocationWebhooks | Self::Geofence => Log::Locations,
        }
    }
}
