//! Settings of persons' tokens and tiers.

use clap::Args;
use service::settings::defaults;

/// How long tokens live, and the limits of the tier `enterprise`.
#[derive(Clone, Debug, Args)]
pub struct PersonSettings {
    /// Lifetime of an access token, in seconds.
    #[arg(
        long,
        env = "WAYPOST_TOKEN_SECONDS",
        default_value_t = 3_600,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub token_seconds: u32,
    /// Requests an hour for accounts of the tier `enterprise`, unless the operator set a number for
    /// the account.
    #[arg(
        long,
        env = "WAYPOST_ENTERPRISE_REQUESTS",
        default_value_t = 1_000_000,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub enterprise_requests: u32,
    /// Positions an hour for accounts of the tier `enterprise`, unless the operator set a number
    /// for the account.
    #[arg(
        long,
        env = "WAYPOST_ENTERPRISE_LOCATIONS",
        default_value_t = 100_000,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub enterprise_locations: u32,
}

impl Default for PersonSettings {
    fn default() -> Self {
        defaults()
    }
}
