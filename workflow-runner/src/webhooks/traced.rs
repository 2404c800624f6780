//! An attempt's place in the trace of its event.

use schemas::Traceparent;
use schemas::delivery::Message;
use traces::{Span, SpanKind};
use uuid::Uuid;

use super::payload::Payload;

/// The span of an attempt, which follows from the cause of the event.
pub(super) fn span_of(payload: &Payload, message: &Message) -> Span {
    let trace = payload.context.traceparent.as_ref();
    let span = traces::follow("delivery attempt", SpanKind::Client, trace);
    span.note("waypost.delivery.id", || message.delivery_id.to_string());
    span.note("waypost.webhook.id", || message.webhook_id.to_string());
    span.note("waypost.event.id", || message.event_id.to_string());
    span.note("waypost.event.type", || message.event_type.clone());
    span
}

/// The trace context for the receiver: with the attempt's span, or, if that is not recorded, with
/// an unrecorded span id of the attempt's own.
pub(super) fn sent_on(span: &Span, payload: &Payload, attempt_id: Uuid) -> Option<Traceparent> {
    let (_, of_attempt) = attempt_id.as_u64_pair();
    let unrecorded = || {
        let trace = payload.context.traceparent.as_ref()?;
        Some(trace.with_span(of_attempt))
    };
    span.traceparent().or_else(unrecorded)
}
