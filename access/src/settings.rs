//! Settings of limits.

use std::time::Duration;

use clap::Args;
use service::settings::{defaults, seconds};

use crate::{OperatorSettings, PersonSettings};

/// How limits are kept.
#[derive(Clone, Debug, Args)]
pub struct LimitSettings {
    /// Rolling window of a key's limit, in seconds.
    #[arg(
        id = "limit-window-seconds",
        long,
        env = "WAYPOST_LIMIT_WINDOW_SECONDS",
        default_value_t = 3_600,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub window: u32,
    /// Fixed window of the business data API, in seconds.
    #[arg(
        id = "limit-minute-seconds",
        long,
        env = "WAYPOST_LIMIT_MINUTE_SECONDS",
        default_value_t = 60,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub minute: u32,
    /// Requests of a key to the business data API in `WAYPOST_LIMIT_MINUTE_SECONDS`.
    #[arg(
        id = "limit-minute-requests",
        long,
        env = "WAYPOST_LIMIT_MINUTE_REQUESTS",
        default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub minute_requests: u32,
    /// Requests that somebody of an organization's staff may send from its pages in
    /// `WAYPOST_LIMIT_WINDOW_SECONDS`.
    #[arg(
        id = "limit-staff-requests",
        long,
        env = "WAYPOST_LIMIT_STAFF_REQUESTS",
        default_value_t = 20_000,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub staff_requests: u32,
    /// How long a limit check or a sign-in attempt waits for Postgres before this process counts
    /// alone.
    #[arg(
        id = "limit-patience-seconds",
        long,
        env = "WAYPOST_LIMIT_PATIENCE_SECONDS",
        default_value = "0.5",
        value_parser = seconds
    )]
    pub timeout: Duration,
    /// How often Postgres is tried again after a limit check got no answer.
    #[arg(
        id = "limit-retry-seconds",
        long,
        env = "WAYPOST_LIMIT_RETRY_SECONDS",
        default_value = "1",
        value_parser = seconds
    )]
    pub retry: Duration,
    /// Whether counts are flushed to disk before a request continues. Without it, a crash of
    /// Postgres itself (not one of Waypost) can lose the counts of the last moments; with it, every
    /// request waits for Postgres' disk.
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
    /// Whose people operate the installation.
    #[command(flatten)]
    pub operators: OperatorSettings,
}

impl Default for LimitSettings {
    fn default() -> Self {
        defaults()
    }
}
