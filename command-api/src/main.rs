//! `command-api` as a process of its own.

use std::process::ExitCode;
use std::sync::Arc;

use access::{Access, LimitSettings};
use clap::Parser;
use clap::builder::FalseyValueParser;
use command_api::accounts::{AccountSettings, Accounts};
use command_api::{CommandSettings, Dependencies, circles, workflows};
use event_log::{EventLog, Keyring, LogSettings};
use service::settings::{CommonSettings, DatabaseSettings, HttpSettings};
use service::{SystemClock, database, telemetry};

/// Takes commands by HTTP and appends events.
#[derive(Debug, Parser)]
#[command(name = "command-api", version)]
struct Cli {
    #[command(flatten)]
    common: CommonSettings,
    #[command(flatten)]
    http: HttpSettings,
    #[command(flatten)]
    log: LogSettings,
    #[command(flatten)]
    database: DatabaseSettings,
    #[command(flatten)]
    limits: LimitSettings,
    #[command(flatten)]
    commands: CommandSettings,
    #[command(flatten)]
    accounts: AccountSettings,
    /// Lets webhooks point at private addresses: `WAYPOST_ALLOW_PRIVATE_TARGETS`, 0.
    #[arg(
        long,
        env = "WAYPOST_ALLOW_PRIVATE_TARGETS",
        value_parser = FalseyValueParser::new()
    )]
    allow_private_targets: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    match start(service::settings::parse::<Cli>()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("command-api: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn start(cli: Cli) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    telemetry::init(&cli.common)?;
    let shutdown = service::until_signalled()?;
    let keyring = Keyring::load(&cli.common.home)?;
    let log = EventLog::connect(&cli.log, keyring).await?;
    let pool = database::connect(&cli.database)?;
    let clock = Arc::new(SystemClock);
    let access = Access::start(&log, &pool, cli.limits, clock.clone(), shutdown.clone()).await?;
    let workflows = workflows::Directory::start(log.clone(), shutdown.clone()).await?;
    let circles = circles::Directory::start(log.clone(), shutdown.clone()).await?;
    let accounts = Accounts::new(cli.accounts, pool, log.keyring(), &cli.common.home)?;
    let dependencies = Dependencies {
        log,
        access,
        accounts,
        workflows,
        circles,
        clock,
        settings: cli.commands,
        allow_private_targets: cli.allow_private_targets,
    };
    command_api::run(dependencies, &cli.http, shutdown).await?;
    Ok(())
}
