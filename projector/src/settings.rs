//! Settings of the projector.

use std::time::Duration;

use service::settings::seconds;

/// The default maximum of events applied in one transaction.
pub const BATCH: usize = 5_000;

/// While others use the database, rebuilds and checks take this share of the time by default, in
/// percent.
pub const SHARE: u32 = 5;

/// How the projector works.
#[derive(Clone, Debug, clap::Args)]
pub struct ProjectorSettings {
    /// Most events applied in one transaction.
    #[arg(
        id = "projector_batch",
        long,
        env = "WAYPOST_PROJECTOR_BATCH",
        default_value_t = BATCH
    )]
    pub batch: usize,
    /// Most sessions that write a large batch of one stream in parallel, each for some of its
    /// projections.
    #[arg(
        id = "projector_writers",
        long,
        env = "WAYPOST_PROJECTOR_WRITERS",
        default_value_t = 4
    )]
    pub writers: usize,
    /// How long the active projector may be silent before a standby takes over.
    #[arg(
        id = "projector_takeover_seconds",
        long,
        env = "WAYPOST_PROJECTOR_TAKEOVER_SECONDS",
        default_value = "3",
        value_parser = seconds
    )]
    pub takeover: Duration,
}
