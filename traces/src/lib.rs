//! Spans of Waypost's work, and their export to an OpenTelemetry collector.
//!
//! Until [`export`] has been given a collector nothing is recorded, and every function here returns
//! at once. A span is a child of the one that this code runs in ([`part`]), or follows from the
//! trace context of an event or a request ([`follow`], [`of_request`]). Spans hold names, numbers
//! and ids that are given to them one by one, never the contents of a log line, a request or an
//! event.

mod export;
mod queries;
mod queue;
mod sampling;
mod span;
mod within;

pub use export::{Collector, ExportError, Exporting, export};
pub use opentelemetry::trace::SpanKind;
pub use queries::queries;
pub use span::{Span, batch, begin, follow, note, of_request, part};
pub use within::{Traced, Within};
