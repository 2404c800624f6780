//! `waypost account`: persons' accounts.

use command_api::accounts::{self, Tiered};
use command_api::{Commands, Origin};
use domain::account::Email;
use schemas::account::Tier;
use serde_json::json;
use service::settings::CommonSettings;

use super::print;
use crate::Failure;
use crate::system::LogAccess;

/// People's accounts.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Account {
    /// Set an account's tier: how much of the location API it may use; prints `{"accountId",
    /// "tier"}`.
    Tier(SetTier),
}

/// Set an account's tier: how much of the location API it may use.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  waypost account tier ada@example.com enterprise --requests 50000 --locations 5000"
)]
pub(crate) struct SetTier {
    /// The person's e-mail address.
    email: String,
    /// `free`, `family`, `family+` or `enterprise`.
    #[arg(value_parser = tier)]
    tier: Tier,
    /// Requests in any rolling hour, instead of the tier's own limit.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    requests: Option<u32>,
    /// Positions in any rolling hour, instead of the tier's own limit.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    locations: Option<u32>,
    #[command(flatten)]
    log: LogAccess,
}

fn tier(text: &str) -> Result<Tier, String> {
    serde_json::from_value(json!(text))
        .map_err(|_| "tiers are free, family, family+ and enterprise".to_owned())
}

impl Account {
    pub(crate) async fn run(self, common: &CommonSettings) -> Result<(), Failure> {
        let Self::Tier(set) = self;
        let email = Email::parse(&set.email)?;
        let tiered = Tiered {
            tier: set.tier,
            requests: set.requests,
            locations: set.locations,
        };
        let commands = Commands::new(set.log.open(common).await?);
        let done = accounts::set_tier(&commands, &Origin::default(), &email, tiered).await?;
        print(&json!({ "accountId": done.answer, "tier": tiered.tier }))
    }
}
