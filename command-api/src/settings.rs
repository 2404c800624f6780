//! The settings of commands.

use std::time::Duration;

use clap::Args;
use service::settings::seconds;

/// How commands are taken.
#[derive(Clone, Debug, Args)]
pub struct CommandSettings {
    /// How long a repeat with the same `Idempotency-Key` gets the first answer:
    /// `WAYPOST_IDEMPOTENCY_SECONDS`, a day.
    #[arg(
        long,
        env = "WAYPOST_IDEMPOTENCY_SECONDS",
        default_value = "86400",
        value_parser = seconds
    )]
    pub idempotency: Duration,
}
