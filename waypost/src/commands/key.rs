//! `waypost key`: API keys.

use chrono::{DateTime, Utc};
use command_api::keys::{self, Given, Giver};
use command_api::{Commands, Origin};
use domain::key::Request;
use schemas::KeyId;
use serde_json::json;
use service::settings::CommonSettings;

use super::print;
use crate::Failure;
use crate::system::{LogAccess, organization};

/// API keys.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Key {
    /// Create a key and show it once; prints `{"keyId", "key"}`.
    Create(Create),
    /// Revoke a key; it stops working everywhere within a second.
    Revoke(Revoke),
}

/// Create a key.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  waypost key create --org ORG --name crm --scope export:contacts:read"
)]
pub(crate) struct Create {
    /// The organization it acts for.
    #[arg(long)]
    org: String,
    /// A name for it.
    #[arg(long)]
    name: String,
    /// Scopes such as `workflows:trigger`; may be given several times.
    #[arg(long = "scope", required = true, num_args = 1..)]
    scopes: Vec<String>,
    /// Requests in any rolling hour; default 1000.
    #[arg(long)]
    rate_limit: Option<u64>,
    /// When it stops working, as RFC 3339.
    #[arg(long)]
    expires: Option<DateTime<Utc>>,
    #[command(flatten)]
    log: LogAccess,
}

/// Revoke a key.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  waypost key revoke --org ORG KEYID")]
pub(crate) struct Revoke {
    /// The organization it acts for.
    #[arg(long)]
    org: String,
    /// The key's id, as printed by `create`.
    key_id: String,
    /// Also revoke the keys that it created, and those they created.
    #[arg(long)]
    given: bool,
    #[command(flatten)]
    log: LogAccess,
}

impl Key {
    pub(crate) async fn run(self, common: &CommonSettings) -> Result<(), Failure> {
        match self {
            Self::Create(create) => create.run(common).await,
            Self::Revoke(revoke) => revoke.run(common).await,
        }
    }
}

impl Create {
    async fn run(self, common: &CommonSettings) -> Result<(), Failure> {
        let commands = Commands::new(self.log.open(common).await?);
        let request = Request {
            name: self.name,
            scopes: self.scopes,
            rate_limit: self.rate_limit,
            expires_at: self.expires,
        };
        let org = organization(commands.log(), self.org).await?;
        let origin = Origin::default();
        let done = keys::create(&commands, &origin, &org, Giver::Operator, request).await?;
        print(&done.answer)
    }
}

impl Revoke {
    async fn run(self, common: &CommonSettings) -> Result<(), Failure> {
        let commands = Commands::new(self.log.open(common).await?);
        let org = organization(commands.log(), self.org).await?;
        let key_id = KeyId::from(self.key_id);
        let given = if self.given {
            Given::Ends
        } else {
            Given::Stays
        };
        keys::revoke(&commands, &Origin::default(), &org, &key_id, given).await?;
        print(&json!({ "keyId": key_id }))
    }
}
