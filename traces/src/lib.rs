//! Spans of what Waypost does, and their way to an OpenTelemetry collector.
//!
//! Until [`export`] has named a collector nothing is recorded, and every function here returns at
//! once. A span is the part of another one that this code runs in ([`part`]) or follows from what
//! an event or a request says of its trace ([`follow`], [`of_request`]). Spans hold names, numbers
//! and ids that are given to them one by one, never what a log line, a request or an event holds.

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
