//! `command-api` as a process of its own.

use std::process::ExitCode;
use std::sync::Arc;

use access::{Access, LimitSettings};
use axum::Router;
use clap::Parser;
use command_api::accounts::AccountSettings;
use command_api::{CommandSettings, Dependencies};
use domain::target::Ranges;
use event_log::{EventLog, Keyring, LogSettings, is_away};
use service::health::Readiness;
use service::settings::{
    CommonSettings, DatabaseSettings, HttpSettings, OpenRunSettings, TraceSettings,
};
use service::{SystemClock, database, once_there, telemetry};
use tokio_util::sync::CancellationToken;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Takes commands by HTTP and appends events.
#[derive(Debug, Parser)]
#[command(name = "command-api", version)]
struct Cli {
    #[command(flatten)]
    common: CommonSettings,
    #[command(flatten)]
    traces: TraceSettings,
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
    #[command(flatten)]
    open_runs: OpenRunSettings,
    /// Private address ranges that HTTP steps and webhooks may reach, comma-separated:
    /// `10.1.0.0/16,fd12:3456::/48`. `1` means this machine and the private ranges (`127/8`,
    /// `10/8`, `172.16/12`, `192.168/16`, `::1`, `fc00::/7`), `0` none. Link-local addresses, cloud
    /// metadata services and tunnels are always refused, and so are the ports of Waypost's own NATS
    /// and Postgres on private addresses.
    #[arg(
        long = "allow-private-targets",
        env = "WAYPOST_ALLOW_PRIVATE_TARGETS",
        default_value = "0",
        default_missing_value = "1",
        num_args = 0..=1
    )]
    open_targets: Ranges,
}

#[tokio::main]
async fn main() -> ExitCode {
    match Box::pin(start(service::settings::parse::<Cli>())).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("command-api: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn start(cli: Cli) -> Result<(), Failure> {
    let traces = telemetry::init_traced(&cli.common, &cli.traces, "command-api")?;
    let ended = run(cli).await;
    traces.finish().await;
    ended
}

async fn run(cli: Cli) -> Result<(), Failure> {
    let shutdown = service::until_signalled()?;
    let readiness = Readiness::default();
    let start = async |stop| routes(&cli, readiness.clone(), stop).await;
    let started = once_there(&shutdown, |error: &Failure| is_away(&**error), start).await?;
    if let Some(router) = started {
        command_api::serve(router, readiness, &cli.http, shutdown).await?;
    }
    Ok(())
}

async fn routes(
    cli: &Cli,
    readiness: Readiness,
    shutdown: CancellationToken,
) -> Result<Router, Failure> {
    let keyring = Keyring::load(&cli.common.home)?;
    let log = EventLog::connect(&cli.log, keyring).await?;
    let pool = database::connect(&cli.database)?;
    let clock = Arc::new(SystemClock);
    let limits = cli.limits.clone();
    let access = Access::start(&log, &pool, limits, clock.clone(), shutdown.clone()).await?;
    let dependencies = Dependencies {
        log,
        access,
        pool,
        clock,
        settings: cli.commands.clone(),
        accounts: cli.accounts.clone(),
        open_runs: cli.open_runs,
        open_targets: cli.open_targets.clone(),
        home: cli.common.home.clone(),
        readiness,
    };
    Ok(Box::pin(command_api::start(dependencies, shutdown)).await?)
}
