//! Settings of persons' tokens and tiers.

use clap::Args;

/// How long tokens live, and what the tier `enterprise` may do by itself.
#[derive(Clone, Debug, Args)]
pub struct PersonSettings {
    /// The life of an access token, in seconds: `WAYPOST_TOKEN_SECONDS`, 3600.
    #[arg(
        long,
        env = "WAYPOST_TOKEN_SECONDS",
        default_value_t = 3_600,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub token_seconds: u32,
    /// Requests in an hour of the tier `enterprise`, where the operator names no number for an
    /// account: `WAYPOST_ENTERPRISE_REQUESTS`, 1,000,000.
    #[arg(
        long,
        env = "WAYPOST_ENTERPRISE_REQUESTS",
        default_value_t = 1_000_000,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub enterprise_requests: u32,
    /// Positions in an hour of the tier `enterprise`, where the operator names no number for an
    /// account: `WAYPOST_ENTERPRISE_LOCATIONS`, 100,000.
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
        Self {
            token_seconds: 3_600,
            enterprise_requests: 1_000_000,
            enterprise_locations: 100_000,
        }
    }
}
