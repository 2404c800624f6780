//! The settings of commands.

use std::time::Duration;

use chrono::TimeDelta;
use clap::Args;
use domain::location::FURTHEST_AHEAD;
use service::settings::{defaults, seconds};

use crate::bounds::BoundSettings;
use crate::records::UploadSettings;

/// How commands are taken.
#[derive(Clone, Debug, Args)]
pub struct CommandSettings {
    /// How long a repeat with the same `Idempotency-Key` gets the first answer.
    #[arg(
        long,
        env = "WAYPOST_IDEMPOTENCY_SECONDS",
        default_value = "86400",
        value_parser = seconds
    )]
    pub idempotency: Duration,
    /// How long an invitation to a circle works.
    #[arg(
        long,
        env = "WAYPOST_INVITE_SECONDS",
        default_value = "604800",
        value_parser = seconds
    )]
    pub invite: Duration,
    /// How far in the future the `recorded_at` of a position may be, 300 at most: senders' clocks
    /// run ahead.
    #[arg(
        long,
        env = "WAYPOST_FIX_AHEAD_SECONDS",
        default_value = "300",
        value_parser = seconds_ahead
    )]
    pub fix_ahead: Duration,
    /// Age from which an SOS is marked as late.
    #[arg(
        long,
        env = "WAYPOST_SOS_LATE_SECONDS",
        default_value = "120",
        value_parser = seconds
    )]
    pub sos_late: Duration,
    /// How long a webhook's old secret keeps signing after a rotation.
    #[arg(
        long,
        env = "WAYPOST_WEBHOOK_OLD_SECRET_SECONDS",
        default_value = "86400",
        value_parser = seconds
    )]
    pub webhook_old_secret: Duration,
    /// Most API keys of an organization in force at a time; does not bind operators.
    #[arg(long, env = "WAYPOST_KEYS_PER_ORGANIZATION", default_value_t = 10_000)]
    pub keys_per_organization: usize,
    /// How many of each thing there may be.
    #[command(flatten)]
    pub bounds: BoundSettings,
    /// How much one upload may bring.
    #[command(flatten)]
    pub uploads: UploadSettings,
    /// An organization's people.
    #[command(flatten)]
    pub people: PeopleSettings,
}

/// How an organization's people are invited.
#[derive(Clone, Debug, Args)]
pub struct PeopleSettings {
    /// How long an invitation to an organization's people works.
    #[arg(
        id = "people-invite-seconds",
        long,
        env = "WAYPOST_PEOPLE_INVITE_SECONDS",
        default_value = "604800",
        value_parser = seconds
    )]
    pub invite: Duration,
    /// Most people and open invitations of an organization.
    #[arg(long, env = "WAYPOST_PEOPLE_PER_ORGANIZATION", default_value_t = 1_000)]
    pub people_per_organization: usize,
}

impl Default for PeopleSettings {
    fn default() -> Self {
        defaults()
    }
}

impl Default for CommandSettings {
    fn default() -> Self {
        defaults()
    }
}

/// Parses how far a fix may be ahead.
fn seconds_ahead(text: &str) -> Result<Duration, String> {
    let ahead = seconds(text)?;
    if TimeDelta::from_std(ahead).is_ok_and(|ahead| ahead <= FURTHEST_AHEAD) {
        Ok(ahead)
    } else {
        Err(format!("must be at most {}", FURTHEST_AHEAD.num_seconds()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fix_may_be_allowed_to_be_less_far_ahead_but_not_further() {
        assert_eq!(seconds_ahead("0.5"), Ok(Duration::from_millis(500)));
        let default = CommandSettings::default().fix_ahead;
        assert_eq!(seconds_ahead("300"), Ok(default));
        for further in ["300.001", "1e18"] {
            let refused = seconds_ahead(further).unwrap_err();
            assert_eq!(refused, "must be at most 300");
        }
    }
}
