//! Export of spans to a collector.

use std::collections::HashMap;
use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{
    ExporterBuildError, Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanExporter as _};
use percent_encoding::percent_decode_str;
use reqwest::Client;
use tokio::time::timeout;
use uuid::Uuid;

use crate::queue::{self, Flush};
use crate::sampling::{RandomIds, Sampling};
use crate::span::Recorder;

/// Timeout of a request to the collector.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout for sending the last spans at the end of the process.
const LAST: Duration = Duration::from_secs(2);
/// Path at which a collector accepts spans over HTTP.
const PATH: &str = "/v1/traces";

/// A collector, and what is sent to it.
#[derive(Clone, Copy, Debug)]
pub struct Collector<'a> {
    /// Its address, such as `http://collector:4318`.
    pub url: &'a str,
    /// Headers for it, as `name=value,name=value` with values percent-encoded.
    pub headers: &'a str,
    /// The share of all traces that is recorded, from 0 to 1.
    pub share: f64,
    /// Name of the process.
    pub service: &'static str,
    /// Its version.
    pub version: &'static str,
}

/// An error when starting the export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A header is malformed.
    #[error("{0} is not name=value")]
    Header(String),
    /// The HTTP client could not be built.
    #[error(transparent)]
    Client(#[from] reqwest::Error),
    /// The address cannot be used.
    #[error(transparent)]
    Exporter(#[from] ExporterBuildError),
}

/// Handle of the export; by default nothing is exported.
#[derive(Debug, Default)]
pub struct Exporting(Option<Flush>);

impl Exporting {
    /// Sends the remaining spans at the end of the process. A collector that does not answer does
    /// not delay it for long.
    pub async fn finish(self) {
        let Some(flush) = self.0 else { return };
        if timeout(LAST, flush.ask()).await.is_err() {
            tracing::warn!("The collector has not taken the last spans in time");
        }
    }
}

/// Starts recording and sending spans, once per process.
pub fn export(collector: &Collector<'_>) -> Result<Exporting, ExportError> {
    let mut exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client()?)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(endpoint(collector.url))
        .with_headers(headers(collector.headers)?)
        .with_timeout(TIMEOUT)
        .build()?;
    let resource = resource(collector);
    exporter.set_resource(&resource);
    let (queue, flush) = queue::start(exporter);
    let sampling = Sampling::new(collector.share);
    let provider = SdkTracerProvider::builder()
        .with_span_processor(queue)
        .with_sampler(sampling.clone())
        .with_id_generator(RandomIds)
        .with_resource(resource)
        .build();
    let scope = InstrumentationScope::builder("waypost").with_version(collector.version);
    let tracer = provider.tracer_with_scope(scope.build());
    Recorder { tracer, sampling }.install();
    Ok(Exporting(Some(flush)))
}

/// Attributes common to all spans of the process; `OTEL_RESOURCE_ATTRIBUTES` may add to them.
fn resource(collector: &Collector<'_>) -> Resource {
    Resource::builder()
        .with_service_name(collector.service)
        .with_attributes([
            KeyValue::new("service.namespace", "waypost"),
            KeyValue::new("service.version", collector.version),
            KeyValue::new("service.instance.id", Uuid::new_v4().to_string()),
        ])
        .build()
}

fn endpoint(url: &str) -> String {
    let url = url.trim_end_matches('/');
    if url.ends_with(PATH) {
        url.to_owned()
    } else {
        format!("{url}{PATH}")
    }
}

fn headers(text: &str) -> Result<HashMap<String, String>, ExportError> {
    let named = text.split(',').map(str::trim).filter(|one| !one.is_empty());
    let header = |one: &str| {
        let wrong = || ExportError::Header(one.split('=').next().unwrap_or_default().to_owned());
        let (name, value) = one.split_once('=').ok_or_else(wrong)?;
        let value = percent_decode_str(value.trim()).decode_utf8();
        let value = value.map_err(|_| wrong())?;
        Ok((name.trim().to_owned(), value.into_owned()))
    };
    named.map(header).collect()
}

fn client() -> Result<Client, reqwest::Error> {
    // Another part of the process may have installed the provider already: it is the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = || {
        Client::builder()
            .user_agent(concat!("Waypost/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .timeout(TIMEOUT)
    };
    // A machine without certificates to trust can still reach a collector without TLS.
    let client = builder().build();
    client.or_else(|_| builder().tls_certs_only([]).build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_may_be_left_out_of_an_address() {
        for url in ["http://c:4318", "http://c:4318/", "http://c:4318/v1/traces"] {
            assert_eq!(endpoint(url), "http://c:4318/v1/traces");
        }
        assert_eq!(endpoint("http://c/otlp"), "http://c/otlp/v1/traces");
    }

    #[test]
    fn headers_are_read_as_opentelemetry_writes_them() {
        let read = headers("authorization=Bearer%20abc==, x-team=one").unwrap();
        assert_eq!(read["authorization"], "Bearer abc==");
        assert_eq!(read["x-team"], "one");
        assert!(headers("").unwrap().is_empty());
        let error = headers("authorization").unwrap_err().to_string();
        assert_eq!(error, "authorization is not name=value");
    }
}
