//! Logs and metrics of the process.

use std::error::Error;
use std::io::{IsTerminal, stderr};
use std::sync::OnceLock;
use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

use crate::settings::{CommonSettings, LogFormat};

/// The name of the histogram of answered requests.
pub const REQUEST_DURATION: &str = "waypost_http_request_duration_seconds";

/// Upper ends in seconds, from a trigger's usual time to an export's.
const DURATION_BUCKETS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0,
];

/// How often the samples that histograms have gathered are counted into their buckets.
const UPKEEP: Duration = Duration::from_secs(5);

static METRICS: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Why telemetry could not begin.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// `WAYPOST_LOG` cannot be read.
    #[error("WAYPOST_LOG is not a log filter: {0}")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
}

/// Begins logging to stderr and keeping metrics, once for the process: later calls change nothing.
pub fn init(settings: &CommonSettings) -> Result<(), TelemetryError> {
    let filter = EnvFilter::builder().parse(&settings.log)?;
    let json = match settings.log_format {
        LogFormat::Auto => !stderr().is_terminal(),
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(stderr);
    let started: Result<(), TryInitError> = if json {
        builder.json().flatten_event(true).finish().try_init()
    } else {
        builder
            .with_ansi(stderr().is_terminal())
            .finish()
            .try_init()
    };
    if started.is_ok() {
        log_panics();
    }
    metrics_handle();
    Ok(())
}

/// The metrics in Prometheus' text form; empty where another recorder was there first.
pub fn render_metrics() -> String {
    metrics_handle()
        .map(PrometheusHandle::render)
        .unwrap_or_default()
}

fn metrics_handle() -> Option<&'static PrometheusHandle> {
    METRICS
        .get_or_init(|| match install_recorder() {
            Ok(handle) => Some(handle),
            Err(error) => {
                tracing::error!(%error, "Metrics cannot be kept");
                None
            }
        })
        .as_ref()
}

fn install_recorder() -> Result<PrometheusHandle, Box<dyn Error>> {
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), DURATION_BUCKETS)?
        .build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder)?;
    metrics::describe_histogram!(
        REQUEST_DURATION,
        metrics::Unit::Seconds,
        "Time from a request's head to the answer's head"
    );
    let upkeep = handle.clone();
    let thread = std::thread::Builder::new().name("metrics-upkeep".to_owned());
    thread.spawn(move || {
        loop {
            std::thread::sleep(UPKEEP);
            upkeep.run_upkeep();
        }
    })?;
    Ok(handle)
}

/// A panic is a log line like any other, so that JSON logs stay JSON.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("no message");
        let place = panic.location().map(ToString::to_string);
        tracing::error!(message, place, "A thread panicked");
    }));
}
