//! The projector as a process of its own.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use event_log::{EventLog, Keyring, LogSettings, is_away};
use projector::{Dependencies, ProjectorSettings};
use service::health::{self, Readiness};
use service::settings::{CommonSettings, DatabaseSettings, HttpSettings, TraceSettings};
use service::{SystemClock, edge, listen, once_there, serve, telemetry, until_signalled};
use tokio_util::sync::CancellationToken;

/// Keeps the read models up with the event log.
#[derive(Parser)]
#[command(version)]
struct Settings {
    #[command(flatten)]
    common: CommonSettings,
    #[command(flatten)]
    traces: TraceSettings,
    #[command(flatten)]
    http: HttpSettings,
    #[command(flatten)]
    database: DatabaseSettings,
    #[command(flatten)]
    log: LogSettings,
    #[command(flatten)]
    projector: ProjectorSettings,
}

#[tokio::main]
async fn main() -> ExitCode {
    match start(service::settings::parse::<Settings>()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error, "The projector has ended");
            ExitCode::FAILURE
        }
    }
}

async fn start(settings: Settings) -> Result<(), Box<dyn std::error::Error>> {
    let traces = telemetry::init_traced(&settings.common, &settings.traces, "projector")?;
    let ended = run(settings).await;
    traces.finish().await;
    ended
}

async fn run(settings: Settings) -> Result<(), Box<dyn std::error::Error>> {
    let shutdown = until_signalled()?;
    let readiness = Readiness::default();
    readiness.add_log(|| false);
    let listener = listen(settings.http.addr).await?;
    let router = edge(health::router(readiness.clone()));
    let http = settings.http.clone();
    let serving = serve(listener, router, shutdown.clone(), http.shutdown, http.edge);
    let working = async {
        let work = work(&settings, readiness, shutdown.clone()).await;
        shutdown.cancel();
        work
    };
    let (served, worked) = tokio::join!(serving, working);
    worked?;
    Ok(served?)
}

async fn work(
    settings: &Settings,
    readiness: Readiness,
    shutdown: CancellationToken,
) -> Result<(), Box<dyn std::error::Error>> {
    let pool = service::database::connect(&settings.database)?;
    let keyring = Keyring::load(&settings.common.home)?;
    let connect = async |_| EventLog::connect(&settings.log, keyring.clone()).await;
    let Some(log) = once_there(&shutdown, |error| is_away(error), connect).await? else {
        return Ok(());
    };
    let deps = Dependencies {
        log,
        pool,
        clock: Arc::new(SystemClock),
        settings: settings.projector.clone(),
        readiness,
    };
    Ok(projector::run(deps, shutdown).await?)
}
