//! `waypost org`: organizations.

use command_api::{Commands, Origin, organizations};
use domain::account::Email;
use service::settings::CommonSettings;

use super::print;
use crate::Failure;
use crate::system::LogAccess;

/// Organizations.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Org {
    /// Found an organization; prints `{"orgId", "ownerPassword"?}`.
    Create(Create),
}

/// Found an organization.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  waypost org create --name 'Rivertown Repairs' --owner ada@example.com"
)]
pub(crate) struct Create {
    /// Its name as people read it.
    #[arg(long)]
    name: String,
    /// Its owner's e-mail address; an address without an account gets one, with a password that
    /// is shown here once.
    #[arg(long)]
    owner: Option<String>,
    #[command(flatten)]
    log: LogAccess,
}

impl Org {
    pub(crate) async fn run(self, common: &CommonSettings) -> Result<(), Failure> {
        let Self::Create(create) = self;
        let owner = create.owner.as_deref().map(Email::parse).transpose()?;
        let commands = Commands::new(create.log.open(common).await?);
        let origin = Origin::default();
        let done = organizations::create(&commands, &origin, &create.name, owner.as_ref()).await?;
        print(&done.answer)
    }
}
