//! Settings of feeds.

use std::time::Duration;

use clap::Args;
use service::settings::{defaults, seconds};

/// How many read feeds at a time, and how patient feeds are with them.
#[derive(Clone, Debug, Args)]
pub struct FeedSettings {
    /// Readers of feeds of one process at a time; an organization gets half of them at most while
    /// nobody else wants any. Further ones are answered 503 with `Retry-After`.
    #[arg(
        id = "feed_readers",
        long,
        env = "WAYPOST_FEED_READERS",
        default_value_t = 128
    )]
    pub readers: usize,
    /// Readers of feeds of one key in one process. Further ones are answered 429 with
    /// `Retry-After`.
    #[arg(
        id = "feed_readers_per_key",
        long,
        env = "WAYPOST_FEED_READERS_PER_KEY",
        default_value_t = 32
    )]
    pub readers_per_key: usize,
    /// How long a feed waits for a reader that takes nothing, before it is cut off.
    #[arg(
        id = "feed_stall_seconds",
        long,
        env = "WAYPOST_FEED_STALL_SECONDS",
        default_value = "60",
        value_parser = seconds
    )]
    pub stall: Duration,
    /// Lowest rate at which a feed's reader must read while it is waited for, in bytes a second.
    #[arg(
        id = "feed_bytes_per_second",
        long,
        env = "WAYPOST_FEED_BYTES_PER_SECOND",
        default_value_t = 4_096,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub least_rate: u32,
}

impl Default for FeedSettings {
    fn default() -> Self {
        defaults()
    }
}
