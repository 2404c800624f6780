//! How the projector works.

use std::time::Duration;

use service::settings::seconds;

/// How the projector works.
#[derive(Clone, Debug, clap::Args)]
pub struct ProjectorSettings {
    /// Events folded in one transaction at most: `WAYPOST_PROJECTOR_BATCH`, 5000.
    #[arg(
        id = "projector_batch",
        long,
        env = "WAYPOST_PROJECTOR_BATCH",
        default_value_t = 5_000
    )]
    pub batch: usize,
    /// How long the active projector may be silent before another takes its place:
    /// `WAYPOST_PROJECTOR_TAKEOVER_SECONDS`, 3.
    #[arg(
        id = "projector_takeover_seconds",
        long,
        env = "WAYPOST_PROJECTOR_TAKEOVER_SECONDS",
        default_value = "3",
        value_parser = seconds
    )]
    pub takeover: Duration,
}

impl Default for ProjectorSettings {
    fn default() -> Self {
        Self {
            batch: 5_000,
            takeover: Duration::from_secs(3),
        }
    }
}
