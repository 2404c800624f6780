//! Settings of reads.

use std::time::Duration;

use clap::Args;
use service::settings::seconds;

use crate::exports::ExportSettings;
use crate::feed::FeedSettings;
use crate::pages::MapSettings;

/// How reads are answered.
#[derive(Clone, Debug, Args)]
pub struct QuerySettings {
    /// How long a read waits for the position in `Waypost-Min-Position`.
    #[arg(
        id = "position_wait_seconds",
        long,
        env = "WAYPOST_POSITION_WAIT_SECONDS",
        default_value = "5",
        value_parser = seconds
    )]
    pub position_wait: Duration,
    /// How often the projections' positions are looked up when no notification came.
    #[arg(
        id = "position_poll_seconds",
        long,
        env = "WAYPOST_POSITION_POLL_SECONDS",
        default_value = "1",
        value_parser = seconds
    )]
    pub position_poll: Duration,
    /// How exports are made.
    #[command(flatten)]
    pub exports: ExportSettings,
    /// What the pages' maps are drawn on.
    #[command(flatten)]
    pub map: MapSettings,
    /// How feeds are read.
    #[command(flatten)]
    pub feeds: FeedSettings,
}
