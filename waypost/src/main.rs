//! `waypost`: the operator's command line, and all services in one process.
//!
//! Every command prints one JSON object on stdout; everything else goes to stderr.

mod commands;
mod system;
mod up;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use service::settings::CommonSettings;
use service::telemetry;
use tokio::runtime::Runtime;

/// The error of a command; its text is for the operator.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// One backend for a field business: workflow runs, CRM exports, positions, business data.
#[derive(Debug, Parser)]
#[command(name = "waypost", version, after_help = EXAMPLES)]
struct Cli {
    #[command(flatten)]
    common: CommonSettings,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  waypost up
  waypost org create --name 'Rivertown Repairs' --owner ada@example.com
  waypost key create --org ORG --name crm --scope export:contacts:read
  waypost import --org ORG contacts contacts.csv
  waypost listen --secret whsec_…

The running system is found through WAYPOST_HOME, or NATS_URL and DATABASE_URL where set.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run everything in one process: private servers, all services, one address.
    Up(Box<up::Up>),
    /// Organizations.
    #[command(subcommand)]
    Org(commands::org::Org),
    /// API keys.
    #[command(subcommand)]
    Key(commands::key::Key),
    /// People's accounts.
    #[command(subcommand)]
    Account(commands::account::Account),
    /// Workflows.
    #[command(subcommand)]
    Workflow(commands::workflow::Workflow),
    /// Secrets that workflows read as `secrets.<NAME>`.
    #[command(subcommand)]
    Secret(commands::secret::Secret),
    /// Import records from a file.
    Import(commands::import::Import),
    /// Print how much each organization keeps.
    Stats(Box<commands::stats::Stats>),
    /// Print the event log, one JSON object per line.
    Events(Box<commands::events::Events>),
    /// Forget a person, or erase a business record.
    Forget(commands::forget::Forget),
    /// Read models.
    #[command(
        subcommand,
        after_help = "Examples:\n  waypost projection list\n  waypost projection verify \
                      contacts\n  waypost projection rebuild contacts\n  waypost projection dead-letters"
    )]
    Projection(commands::projection::Projection),
    /// Back up the log, and verify backups.
    Backup(Box<commands::backup::Backup>),
    /// Restore a backup into an empty system.
    Restore(Box<commands::restore::Restore>),
    /// The master key, which protects all sealed data.
    #[command(subcommand)]
    MasterKey(commands::master_key::MasterKey),
    /// Receive webhooks and workflow calls on this machine and print them.
    Listen(commands::listen::Listen),
    /// Migrate Postgres to this release's schema.
    Migrate(commands::migrate::Migrate),
    /// Print the demo's addresses, key and sign-in.
    #[command(after_help = "Example:\n  waypost demo")]
    Demo,
}

impl Command {
    /// Whether it reads the whole log while requests are served, and nothing waits for it.
    fn can_wait(&self) -> bool {
        match self {
            Self::Projection(projection) => projection.can_wait(),
            Self::Backup(_) | Self::MasterKey(_) | Self::Stats(_) => true,
            _ => false,
        }
    }
}

fn main() -> ExitCode {
    let cli = service::settings::parse::<Cli>();
    if cli.command.can_wait() {
        // On busy processors, the services go first. The runtime's threads inherit this; without it
        // the command only takes more of the machine.
        let _ = rustix::process::nice(10);
    }
    let done = Runtime::new().map_err(Failure::from);
    match done.and_then(|runtime| runtime.block_on(run(cli))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("waypost: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> Result<(), Failure> {
    let Cli { common, command } = cli;
    if !matches!(command, Command::Up(_)) {
        telemetry::init(&common)?;
    }
    match command {
        Command::Up(up) => Box::pin(up.run(common)).await,
        Command::Org(org) => org.run(&common).await,
        Command::Key(key) => key.run(&common).await,
        Command::Account(account) => account.run(&common).await,
        Command::Forget(forget) => forget.run(&common).await,
        Command::Workflow(workflow) => workflow.run(&common).await,
        Command::Secret(secret) => secret.run(&common).await,
        Command::Import(import) => import.run(&common).await,
        Command::Stats(stats) => stats.run(&common).await,
        Command::Events(events) => Box::pin(events.run(&common)).await,
        Command::Projection(projection) => projection.run(&common).await,
        Command::Backup(backup) => Box::pin(backup.run(&common)).await,
        Command::Restore(restore) => Box::pin(restore.run(&common)).await,
        Command::MasterKey(master_key) => master_key.run(&common).await,
        Command::Listen(listen) => listen.run().await,
        Command::Migrate(migrate) => migrate.run(&common).await,
        Command::Demo => commands::demo::show(&common),
    }
}
