//! Spans, and the functions that begin them.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{
    Link, SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags,
    TraceId, TraceState,
};
use opentelemetry::{Context, ContextGuard, KeyValue, Value};
use opentelemetry_sdk::trace::SdkTracer;
use schemas::Traceparent;

use crate::sampling::Sampling;

/// Begins spans; unset while no collector is configured.
static RECORDER: OnceLock<Recorder> = OnceLock::new();

/// Begins spans of the sampled traces.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) tracer: SdkTracer,
    pub(crate) sampling: Sampling,
}

impl Recorder {
    /// Starts recording. A second call changes nothing.
    pub(crate) fn install(self) {
        let _ = RECORDER.set(self);
    }

    fn is_wanted(&self, trace: &Traceparent) -> bool {
        trace.is_sampled() && self.sampling.chooses(context_of(trace).trace_id())
    }
}

/// How many of its events' traces a batch links to, at most.
const LINKS: usize = 128;

/// A span that lasts until it and all its clones are dropped; empty if its trace is not recorded.
#[derive(Clone, Debug, Default)]
pub struct Span(Option<Context>);

/// The span of a request, and the trace context for everything that follows from it; `None` while
/// no traces are recorded.
pub fn of_request(sender: Option<&Traceparent>) -> Option<(Span, Traceparent)> {
    let tracer = &RECORDER.get()?.tracer;
    let parent = sender.map_or_else(Context::new, remote);
    let builder = SpanBuilder::from_name("request").with_kind(SpanKind::Server);
    let context = parent.with_span(builder.start_with_context(tracer, &parent));
    let traceparent = traceparent(context.span().span_context());
    Some((Span::recorded(context), traceparent))
}

/// The context of a trace that begins without a request, such as on a timer, from random bits for
/// the trace id and the id of its first span.
pub fn begin(trace: u128, span: u64) -> Traceparent {
    let is_wanted = |recorder: &Recorder| recorder.sampling.chooses(trace.into());
    Traceparent::new(trace, span, RECORDER.get().is_none_or(is_wanted))
}

/// A span that follows from the trace context `cause`, in this process or another.
pub fn follow(name: &'static str, kind: SpanKind, cause: Option<&Traceparent>) -> Span {
    match (RECORDER.get(), cause) {
        (Some(recorder), Some(cause)) if cause.is_sampled() => {
            let builder = SpanBuilder::from_name(name).with_kind(kind);
            start(recorder, builder, &remote(cause))
        }
        _ => Span::default(),
    }
}

/// A child of the span that this code runs in.
pub fn part(name: &'static str, kind: SpanKind) -> Span {
    begin_part(|| SpanBuilder::from_name(name).with_kind(kind))
}

/// A span that has already ended, as a child of the one that this code runs in.
pub(crate) fn ended_part(
    name: String,
    took: Duration,
    attributes: impl IntoIterator<Item = KeyValue>,
) {
    #[expect(
        clippy::disallowed_methods,
        reason = "nothing is decided by a span's time"
    )]
    begin_part(|| {
        let builder = SpanBuilder::from_name(name).with_kind(SpanKind::Client);
        let started = SystemTime::now().checked_sub(took);
        builder
            .with_start_time(started.unwrap_or(SystemTime::UNIX_EPOCH))
            .with_attributes(attributes)
    });
}

/// A span for work done on a batch of events: in a trace of its own, with links to theirs. Empty if
/// none of those is recorded.
pub fn batch<'t>(name: &'static str, causes: impl Iterator<Item = &'t Traceparent>) -> Span {
    let Some(recorder) = RECORDER.get() else {
        return Span::default();
    };
    let wanted = causes.filter(|cause| recorder.is_wanted(cause)).take(LINKS);
    let links: Vec<_> = wanted.map(context_of).map(Link::with_context).collect();
    if links.is_empty() {
        return Span::default();
    }
    let builder = SpanBuilder::from_name(name).with_kind(SpanKind::Consumer);
    start(recorder, builder.with_links(links), &Context::new())
}

/// Sets an attribute on the span that this code runs in.
pub fn note(key: &'static str, value: impl Into<Value>) {
    if RECORDER.get().is_some() {
        Context::map_current(|current| current.span().set_attribute(KeyValue::new(key, value)));
    }
}

/// Whether this code runs in a recorded span.
pub(crate) fn is_recorded() -> bool {
    RECORDER.get().is_some() && Context::map_current(|current| current.span().is_recording())
}

impl Span {
    fn recorded(context: Context) -> Self {
        let is_recording = context.span().is_recording();
        Self(is_recording.then_some(context))
    }

    /// Whether this span is recorded.
    pub fn is_recorded(&self) -> bool {
        self.0.is_some()
    }

    /// The context under which later work, in any process, joins this trace.
    pub fn traceparent(&self) -> Option<Traceparent> {
        let context = self.0.as_ref()?;
        Some(traceparent(context.span().span_context()))
    }

    /// A child of this span.
    #[must_use]
    pub fn part(&self, name: &'static str, kind: SpanKind) -> Self {
        let _within = self.enter();
        part(name, kind)
    }

    /// Sets an attribute on this span.
    pub fn note<V: Into<Value>>(&self, key: &'static str, value: impl FnOnce() -> V) {
        if let Some(context) = &self.0 {
            let attribute = KeyValue::new(key, value());
            context.span().set_attribute(attribute);
        }
    }

    /// Renames this span.
    pub fn rename<N: Into<Cow<'static, str>>>(&self, name: impl FnOnce() -> N) {
        if let Some(context) = &self.0 {
            context.span().update_name(name());
        }
    }

    /// Adds a link to another span.
    pub fn link(&self, other: &Self) {
        if let (Some(context), Some(other)) = (&self.0, &other.0) {
            let other = other.span().span_context().clone();
            context.span().add_link(other, Vec::new());
        }
    }

    /// Marks this span as failed. The reason is left to the log: it may quote personal data.
    pub fn failed(&self) {
        if let Some(context) = &self.0 {
            context.span().set_status(Status::error(""));
        }
    }

    pub(crate) fn enter(&self) -> Option<ContextGuard> {
        self.0.clone().map(Context::attach)
    }
}

fn begin_part(builder: impl FnOnce() -> SpanBuilder) -> Span {
    let Some(recorder) = RECORDER.get().filter(|_| is_recorded()) else {
        return Span::default();
    };
    start(recorder, builder(), &Context::current())
}

fn start(recorder: &Recorder, builder: SpanBuilder, parent: &Context) -> Span {
    let span = builder.start_with_context(&recorder.tracer, parent);
    Span::recorded(parent.with_span(span))
}

fn remote(traceparent: &Traceparent) -> Context {
    Context::new().with_remote_span_context(context_of(traceparent))
}

fn context_of(traceparent: &Traceparent) -> SpanContext {
    let flags = TraceFlags::default().with_sampled(traceparent.is_sampled());
    let trace = TraceId::from_hex(traceparent.trace_id()).unwrap_or(TraceId::INVALID);
    let span = SpanId::from_hex(traceparent.span_id()).unwrap_or(SpanId::INVALID);
    SpanContext::new(trace, span, flags, true, TraceState::default())
}

fn traceparent(context: &SpanContext) -> Traceparent {
    let trace = u128::from_be_bytes(context.trace_id().to_bytes());
    let span = u64::from_be_bytes(context.span_id().to_bytes());
    Traceparent::new(trace, span, context.is_sampled())
}
