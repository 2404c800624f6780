//! `waypost workflow`: workflows.

use std::path::PathBuf;

use command_api::{Commands, Origin, workflows};
use service::settings::CommonSettings;

use super::{print, read_input};
use crate::Failure;
use crate::system::{LogAccess, organization};

/// Workflows.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Workflow {
    /// Save a definition; prints `{"workflowId", "version"}`.
    Put(Put),
}

/// Save a definition.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  waypost workflow put --org ORG --id welcome welcome.json")]
pub(crate) struct Put {
    /// The organization it belongs to.
    #[arg(long)]
    org: String,
    /// Its id; a new one unless given here or in the file as `workflowId`.
    #[arg(long)]
    id: Option<String>,
    /// The definition as JSON, `-` for standard input.
    file: PathBuf,
    #[command(flatten)]
    log: LogAccess,
}

impl Workflow {
    pub(crate) async fn run(self, common: &CommonSettings) -> Result<(), Failure> {
        let Self::Put(put) = self;
        let text = read_input(&put.file)?;
        let named = |error| format!("{}: {error}", put.file.display());
        let document = serde_json::from_str(&text).map_err(named)?;
        let id = put
            .id
            .as_deref()
            .map(domain::workflow::parse_id)
            .transpose()?;
        let commands = Commands::new(put.log.open(common).await?);
        let org = organization(commands.log(), put.org).await?;
        let origin = Origin::default();
        let done = workflows::put(&commands, &origin, &org, id, document).await?;
        print(&done.answer)
    }
}
