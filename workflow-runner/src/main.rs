//! The workflow runner as a process of its own.

use std::process::ExitCode;
use std::sync::Arc;

use access::{Access, LimitSettings};
use clap::Parser;
use event_log::{EventLog, Keyring, LogSettings};
use service::health::{self, Readiness};
use service::settings::{CommonSettings, DatabaseSettings, HttpSettings, TraceSettings};
use service::{SystemClock, database, telemetry};
use workflow_runner::{Dependencies, RunnerSettings, targets};

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

async fn start(cli: Cli) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let traces = telemetry::init_traced(&cli.common, &cli.traces, "workflow-runner")?;
    let ended = run(cli).await;
    traces.finish().await;
    ended
}

async fn run(cli: Cli) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let shutdown = service::until_signalled()?;
    let listener = service::listen(cli.http.addr).await?;
    let keyring = Keyring::load(&cli.common.home)?;
    let log = Box::pin(EventLog::connect(&cli.log, keyring)).await?;
    // Keys of sockets are limited like any other; runs and pushes need no database.
    let pool = database::connect(&cli.database)?;
    let clock = Arc::new(SystemClock);
    let access = Access::start(&log, &pool, cli.limits, clock.clone(), shutdown.clone()).await?;
    let readiness = Readiness::default();
    let own_ports = targets::own_ports(&log, pool.connect_options().get_port());
    let runner = workflow_runner::start(Dependencies {
        log,
        access,
        clock,
        settings: cli.runner,
        readiness: readiness.clone(),
        own_ports,
    })
    .await?;
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
