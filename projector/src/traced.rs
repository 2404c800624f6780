//! A batch in the traces that its events belong to.
//!
//! The batch has a span in a trace of its own, with its queries, that links to the events' traces;
//! in each of these a span of the event's own links back to the batch.

use event_log::Item;
use schemas::{Log, Recorded};
use traces::{Span, SpanKind, Traced as _};

use crate::checkpoint::log_name;

/// Runs the work for a batch of events within its span and theirs.
pub(crate) async fn traced<T, E>(
    log: Log,
    items: &[Item],
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let causes = items.iter().filter_map(Item::event);
    let causes = causes.filter_map(|event| event.context.traceparent.as_ref());
    let batch = traces::batch("projection batch", causes);
    batch.note("waypost.log", || log_name(log));
    batch.note("waypost.events", || number(items.len() as u64));
    let events = spans_of_events(&batch, items);
    let done = work.within(&batch).await;
    if done.is_err() {
        events.iter().chain([&batch]).for_each(Span::failed);
    }
    done
}

fn spans_of_events(batch: &Span, items: &[Item]) -> Vec<Span> {
    if !batch.is_recorded() {
        return Vec::new();
    }
    let events = items.iter().filter_map(Item::event);
    let spans = events.map(|event| span_of(event, batch));
    spans.filter(Span::is_recorded).collect()
}

fn span_of(event: &Recorded, batch: &Span) -> Span {
    let trace = event.context.traceparent.as_ref();
    let span = traces::follow("projection", SpanKind::Consumer, trace);
    span.link(batch);
    span.note("waypost.event.id", || event.id.to_string());
    span.note("waypost.event.type", || event.event.name().into_owned());
    span.note("waypost.sequence", || number(event.sequence));
    span
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
