//! Logs, metrics and traces of the process.

use std::error::Error;
use std::io::{IsTerminal, stderr};
use std::sync::OnceLock;
use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use traces::{Collector, ExportError, Exporting};
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, registry};

use crate::settings::{CommonSettings, LogFormat, TraceSettings};

/// The name of the histogram of answered requests.
pub const REQUEST_DURATION: &str = "waypost_http_request_duration_seconds";

/// Upper bounds in seconds, from a trigger's usual time to an export's.
const DURATION_BUCKETS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0,
];

/// How often the gathered samples of histograms are counted into their buckets.
const UPKEEP: Duration = Duration::from_secs(5);

static METRICS: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// An error when starting telemetry.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// `WAYPOST_LOG` is not a valid filter.
    #[error("WAYPOST_LOG is not a log filter: {0}")]
    Filter(#[from] ParseError),
    /// Traces cannot be sent.
    #[error("WAYPOST_TRACES_URL or WAYPOST_TRACES_HEADERS cannot be used: {0}")]
    Traces(#[from] ExportError),
}

/// Starts logging to stderr and recording metrics, once per process: later calls change nothing.
pub fn init(settings: &CommonSettings) -> Result<(), TelemetryError> {
    if registry().with(logs(settings)?).try_init().is_ok() {
        log_panics();
    }
    metrics_handle();
    Ok(())
}

/// The same for a service, whose traces go to a collector if one is configured; the returned handle
/// sends the last of them.
pub fn init_traced(
    settings: &CommonSettings,
    traces: &TraceSettings,
    service: &'static str,
) -> Result<Exporting, TelemetryError> {
    let Some(url) = traces.url() else {
        init(settings)?;
        return Ok(Exporting::default());
    };
    let layers = registry().with(logs(settings)?).with(traces::queries());
    if layers.try_init().is_ok() {
        log_panics();
    }
    metrics_handle();
    Ok(traces::export(&Collector {
        url,
        headers: traces.headers(),
        share: traces.share,
        service,
        version: env!("CARGO_PKG_VERSION"),
    })?)
}

fn logs(settings: &CommonSettings) -> Result<impl Layer<Registry> + use<>, ParseError> {
    let filter = EnvFilter::builder().parse(&settings.log)?;
    let json = match settings.log_format {
        LogFormat::Auto => !stderr().is_terminal(),
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    let lines = fmt::layer().with_writer(stderr);
    let lines = if json {
        lines.json().flatten_event(true).boxed()
    } else {
        lines.with_ansi(stderr().is_terminal()).boxed()
    };
    Ok(lines.with_filter(filter))
}

/// The metrics in Prometheus text format; empty if another recorder was installed first.
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

/// Logs panics like any other line, so that JSON logs stay JSON.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("no message");
        let place = panic.location().map(ToString::to_string);
        tracing::error!(message, place, "A thread panicked");
    }));
}
