//! Settings of limits.

use std::time::Duration;

use clap::Args;
use service::settings::seconds;

use crate::PersonSettings;

/// How limits are kept.
#[derive(Clone, Debug, Args)]
pub struct LimitSettings {
    /// The rolling window of a key's limit, in seconds: `WAYPOST_LIMIT_WINDOW_SECONDS`, 3600.
    #[arg(
        id = "limit-window-seconds",
        long,
        env = "WAYPOST_LIMIT_WINDOW_SECONDS",
        default_value_t = 3_600,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub window: u32,
    /// The fixed window of the business data API, in seconds: `WAYPOST_LIMIT_MINUTE_SECONDS`, 60.
    #[arg(
        id = "limit-minute-seconds",
        long,
        env = "WAYPOST_LIMIT_MINUTE_SECONDS",
        default_value_t = 60,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub minute: u32,
    /// Requests of a key to the business data API in that window:
    /// `WAYPOST_LIMIT_MINUTE_REQUESTS`, 100.
    #[arg(
        id = "limit-minute-requests",
        long,
        env = "WAYPOST_LIMIT_MINUTE_REQUESTS",
        default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub minute_requests: u32,
    /// How long a check waits for Postgres before this process counts alone:
    /// `WAYPOST_LIMIT_PATIENCE_SECONDS`, 0.5.
    #[arg(
        id = "limit-patience-seconds",
        long,
        env = "WAYPOST_LIMIT_PATIENCE_SECONDS",
        default_value = "0.5",
        value_parser = seconds
    )]
    pub patience: Duration,
    /// How often Postgres is tried again after that: `WAYPOST_LIMIT_RETRY_SECONDS`, 1.
    #[arg(
        id = "limit-retry-seconds",
        long,
        env = "WAYPOST_LIMIT_RETRY_SECONDS",
        default_value = "1",
        value_parser = seconds
    )]
    pub retry: Duration,
    /// Whether counts are flushed to disk before a request goes on: `WAYPOST_LIMIT_FLUSH`, false.
    /// Without it, a crash of Postgres itself (not one of Waypost) can forget the counts of its
    /// last moments; with it, every request waits for Postgres' disk.
    #[arg(
        id = "limit-flush",
        long,
        env = "WAYPOST_LIMIT_FLUSH",
        default_value_t = false,
        action = clap::ArgAction::Set
    )]
    pub flush: bool,
    /// Persons' tokens and tiers.
    #[command(flatten)]
    pub persons: PersonSettings,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            window: 3_600,
            minute: 60,
            minute_requests: 100,
            patience: Duration::from_millis(500),
            retry: Duration::from_secs(1),
            flush: false,
            persons: PersonSettings::default(),
        }
    }
}
