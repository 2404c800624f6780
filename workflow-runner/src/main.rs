//! The workflow runner as a process of its own.

use std::process::ExitCode;
use std::sync::Arc;

use access::{Access, LimitSettings};
use clap::Parser;
use event_log::{EventLog, Keyring, LogSettings, is_away};
use service::health::{self, Readiness};
use service::settings::{CommonSettings, DatabaseSettings, HttpSettings, TraceSettings};
use service::{SystemClock, database, once_there, telemetry};
use tokio_util::sync::CancellationToken;
use workflow_runner::{Dependencies, Runner, RunnerSettings, targets};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Carries out workflow runs; pushes events to sockets and webhook receivers.
#[derive(Debug, Parser)]
#[command(name = "workflow-runner", version)]
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
    runner: RunnerSettings,
}

#[tokio::main]
async fn main() -> ExitCode {
    match start(service::settings::parse::<Cli>()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("workflow-runner: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn start(cli: Cli) -> Result<(), Failure> {
    let traces = telemetry::init_traced(&cli.common, &cli.traces, "workflow-runner")?;
    let ended = run(cli).await;
    traces.finish().await;
    ended
}

async fn run(cli: Cli) -> Result<(), Failure> {
    let shutdown = service::until_signalled()?;
    let listener = service::listen(cli.http.addr).await?;
    let readiness = Readiness::default();
    let start = async |stop| runner(&cli, readiness.clone(), stop).await;
    let started = once_there(&shutdown, |error: &Failure| is_away(&**error), start).await?;
    let Some(runner) = started else {
        return Ok(());
    };
    let router = service::edge(runner.router().merge(health::router(readiness)));
    let http = cli.http;
    let serving = service::serve(listener, router, shutdown.clone(), http.shutdown, http.edge);
    let running = async {
        let ended = runner.run(shutdown.clone()).await;
        shutdown.cancel();
        ended
    };
    let (served, ran) = tokio::join!(serving, Box::pin(running));
    ran?;
    Ok(served?)
}

async fn runner(
    cli: &Cli,
    readiness: Readiness,
    shutdown: CancellationToken,
) -> Result<Runner, Failure> {
    let keyring = Keyring::load(&cli.common.home)?;
    let log = EventLog::connect(&cli.log, keyring).await?;
    // Keys of sockets are limited like any other; runs and pushes need no database.
    let pool = database::connect(&cli.database)?;
    let clock = Arc::new(SystemClock);
    let limits = cli.limits.clone();
    let access = Access::start(&log, &pool, limits, clock.clone(), shutdown).await?;
    let own_ports = targets::own_ports(&log, pool.connect_options().get_port());
    let dependencies = Dependencies {
        log,
        access,
        clock,
        settings: cli.runner.clone(),
        readiness,
        own_ports,
    };
    Ok(workflow_runner::start(dependencies).await?)
}
