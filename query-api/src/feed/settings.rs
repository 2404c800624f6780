//! Settings of feeds.

use std::time::Duration;

use clap::Args;
use service::settings::seconds;

/// How many read feeds at a time, and how patient feeds are with them.
#[derive(Clone, Debug, Args)]
pub struct FeedSettings {
    /// Readers of feeds of one process at a time. An organization gets half of them where nobody
    /// else wants any: `WAYPOST_FEED_READERS`, 128.
    #[arg(
        id = "feed_readers",
        long,
        env = "WAYPOST_FEED_READERS",
        default_value_t = READERS
    )]
    pub readers: usize,
    /// Readers of feeds of one key in one process at a time: `WAYPOST_FEED_READERS_PER_KEY`, 32.
    #[arg(
        id = "feed_readers_per_key",
        long,
        env = "WAYPOST_FEED_READERS_PER_KEY",
        default_value_t = PER_KEY
    )]
    pub readers_per_key: usize,
    /// How long a feed waits for a reader that takes nothing, before it breaks off:
    /// `WAYPOST_FEED_STALL_SECONDS`, 60.
    #[arg(
        id = "feed_stall_seconds",
        long,
        env = "WAYPOST_FEED_STALL_SECONDS",
        default_value = "60",
        value_parser = seconds
    )]
    pub stall: Duration,
    /// The bytes a second that a reader of a feed takes at least while it is waited for:
    /// `WAYPOST_FEED_BYTES_PER_SECOND`, 4096.
    #[arg(
        id = "feed_bytes_per_second",
        long,
        env = "WAYPOST_FEED_BYTES_PER_SECOND",
        default_value_t = RATE,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub least_rate: u32,
}

const READERS: usize = 128;
const PER_KEY: usize = 32;
const RATE: u32 = 4_096;

impl Default for FeedSettings {
    fn default() -> Self {
        Self {
            readers: READERS,
            readers_per_key: PER_KEY,
            stall: Duration::from_mins(1),
            least_rate: RATE,
        }
    }
}
