//! `waypost secret`: values that workflows use and nobody sees.

use std::path::Path;

use command_api::{Commands, Origin, secrets};
use serde_json::json;
use service::settings::CommonSettings;

use super::{print, read_input};
use crate::Failure;
use crate::system::{LogAccess, organization};

/// Secrets that workflows read as `secrets.<NAME>`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Secret {
    /// Set a secret to the value on standard input; prints `{"name"}`.
    Set(Set),
}

/// Set a secret.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  printf %s \"$TOKEN\" | waypost secret set --org ORG CRM_TOKEN --hosts crm.example,*.crm.example"
)]
pub(crate) struct Set {
    /// The organization it belongs to.
    #[arg(long)]
    org: String,
    /// Its name.
    name: String,
    /// Hosts that it may be sent to (`*.crm.example` for all below a name); steps that would send
    /// it elsewhere fail. Default: the hosts that it has; for a new secret, any.
    #[arg(long, value_delimiter = ',', conflicts_with = "any_host")]
    hosts: Option<Vec<String>>,
    /// Allow any host again.
    #[arg(long)]
    any_host: bool,
    #[command(flatten)]
    log: LogAccess,
}

impl Secret {
    pub(crate) async fn run(self, common: &CommonSettings) -> Result<(), Failure> {
        let Self::Set(set) = self;
        let value = read_input(Path::new("-"))?;
        // The line ending that a terminal or `echo` adds is not part of the secret.
        let value = value.strip_suffix('\n').unwrap_or(&value);
        let commands = Commands::new(set.log.open(common).await?);
        let org = organization(commands.log(), set.org).await?;
        let hosts = match &set.hosts {
            Some(hosts) => Some(hosts.as_slice()),
            None => set.any_host.then_some(&[][..]),
        };
        secrets::set(&commands, &Origin::default(), &org, &set.name, value, hosts).await?;
        print(&json!({ "name": set.name }))
    }
}
