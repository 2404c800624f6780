//! A collector: it receives spans by OTLP and keeps them.

use std::collections::HashMap;
use std::fmt::Write as _;

use harness::{Receiver, eventually};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1 as otlp;
use prost::Message as _;

/// A received span.
#[derive(Clone, Debug)]
pub(super) struct Span {
    /// The name of the process that recorded it.
    pub(super) service: String,
    pub(super) name: String,
    /// Ids are hexadecimal, as in headers.
    pub(super) trace: String,
    pub(super) id: String,
    /// Empty if it is the first of its trace.
    pub(super) parent: String,
    /// The traces and spans that it links to.
    pub(super) links: Vec<(String, String)>,
    pub(super) attributes: HashMap<String, String>,
    pub(super) started: u64,
    pub(super) ended: u64,
    pub(super) has_failed: bool,
}

impl Span {
    pub(super) fn is(&self, name: &str) -> bool {
        self.name == name
    }

    fn read(service: &str, span: &otlp::Span) -> Self {
        let links = span.links.iter();
        let failed = otlp::status::StatusCode::Error as i32;
        Self {
            service: service.to_owned(),
            name: span.name.clone(),
            trace: hex(&span.trace_id),
            id: hex(&span.span_id),
            parent: hex(&span.parent_span_id),
            links: links
                .map(|link| (hex(&link.trace_id), hex(&link.span_id)))
                .collect(),
            attributes: attributes(&span.attributes),
            started: span.start_time_unix_nano,
            ended: span.end_time_unix_nano,
            has_failed: span
                .status
                .as_ref()
                .is_some_and(|status| status.code == failed),
        }
    }
}

pub(super) struct Collector(Receiver);

impl Collector {
    pub(super) async fn start() -> Self {
        let receiver = Receiver::start().await;
        receiver.status(200);
        Self(receiver)
    }

    pub(super) fn url(&self) -> String {
        self.0.url("")
    }

    /// The receiver of its requests, to change its responses.
    pub(super) fn receiver(&self) -> &Receiver {
        &self.0
    }

    /// All that has arrived, byte for byte.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let received = self.0.received();
        received.iter().flat_map(|one| one.body.to_vec()).collect()
    }

    pub(super) fn spans(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        for received in self.0.received() {
            assert_eq!(received.path, "/v1/traces");
            let sent = ExportTraceServiceRequest::decode(received.body).expect("OTLP");
            for of_process in sent.resource_spans {
                let resource = of_process.resource.expect("a resource");
                let service = attributes(&resource.attributes)["service.name"].clone();
                let of_process = of_process.scope_spans.iter().flat_map(|scope| &scope.spans);
                spans.extend(of_process.map(|span| Span::read(&service, span)));
            }
        }
        spans
    }

    /// Waits until the spans of a trace satisfy `wanted`, and returns them.
    pub(super) async fn until(&self, trace: &str, wanted: impl Fn(&[Span]) -> bool) -> Vec<Span> {
        eventually("the spans of a trace", async || {
            let mut spans = self.spans();
            spans.retain(|span| span.trace == trace);
            wanted(&spans).then_some(spans)
        })
        .await
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn attributes(all: &[KeyValue]) -> HashMap<String, String> {
    let text = |value: &Value| match value {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    let read = |one: &KeyValue| {
        let value = one.value.as_ref()?.value.as_ref()?;
        Some((one.key.clone(), text(value)))
    };
    all.iter().filter_map(read).collect()
}
