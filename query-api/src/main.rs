//! `query-api` as a separate process.

use std::process::ExitCode;
use std::sync::Arc;

use access::{Access, LimitSettings};
use axum::Router;
use clap::Parser;
use event_log::{EventLog, Keyring, LogSettings, is_away};
use query_api::{Dependencies, QuerySettings};
use service::health::Readiness;
use service::settings::{CommonSettings, DatabaseSettings, HttpSettings, TraceSettings};
use service::{SystemClock, database, once_there, telemetry};
use tokio_util::sync::CancellationToken;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Answers reads and exports by HTTP from the read models.
#[derive(Debug, Parser)]
#[command(name = "query-api", version)]
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
    queries: QuerySettings,
}

#[tokio::main]
async fn main() -> ExitCode {
    match Box::pin(start(service::settings::parse::<Cli>())).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("query-api: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn start(cli: Cli) -> Result<(), Failure> {
    let traces = telemetry::init_traced(&cli.common, &cli.traces, "query-api")?;
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
        query_api::serve(router, readiness, &cli.http, shutdown).await?;
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
    // Requests are counted in tables that the read role cannot write.
    let counting = database::connect(&cli.database)?;
    let clock = Arc::new(SystemClock);
    let limits = cli.limits.clone();
    let access = Access::start(&log, &counting, limits, clock.clone(), shutdown).await?;
    Ok(query_api::start(Dependencies {
        access,
        log,
        pool: database::connect_read_only(&cli.database)?,
        clock,
        settings: cli.queries.clone(),
        readiness,
    }))
}
