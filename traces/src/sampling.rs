//! Which traces are recorded.

use opentelemetry::trace::{Link, SpanId, SpanKind, TraceContextExt as _, TraceId, TraceState};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{IdGenerator, SamplingDecision, SamplingResult, ShouldSample};
use uuid::Uuid;

/// The last 56 bits of a trace id are random, as W3C's Trace Context specifies.
const RANDOM_BITS: u128 = (1 << 56) - 1;

/// Records a share of all traces, chosen by their ids, so that all processes choose the same ones.
/// Of those that begin elsewhere, only traces that are recorded there. OpenTelemetry's own ratio
/// sampler also looks at bits that are the same in every UUID.
#[derive(Clone, Debug)]
pub(crate) struct Sampling {
    /// Minimum of the random bits of a recorded trace.
    threshold: u128,
}

impl Sampling {
    /// `share` is from 0 (none) to 1 (all).
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share is not that exact, and lies between 0 and 1"
    )]
    pub(crate) fn new(share: f64) -> Self {
        let all = (RANDOM_BITS + 1) as f64;
        Self {
            threshold: (all * (1.0 - share.clamp(0.0, 1.0))) as u128,
        }
    }

    pub(crate) fn chooses(&self, trace: TraceId) -> bool {
        u128::from_be_bytes(trace.to_bytes()) & RANDOM_BITS >= self.threshold
    }
}

impl ShouldSample for Sampling {
    fn should_sample(
        &self,
        parent: Option<&Context>,
        trace: TraceId,
        _: &str,
        _: &SpanKind,
        _: &[KeyValue],
        links: &[Link],
    ) -> SamplingResult {
        let parent = parent.map(|parent| parent.span().span_context().clone());
        let chosen = match parent.filter(opentelemetry::trace::SpanContext::is_valid) {
            // The decision for a trace begun in this process is kept.
            Some(parent) if !parent.is_remote() => parent.is_sampled(),
            Some(parent) => parent.is_sampled() && self.chooses(trace),
            // A batch is recorded if one of its events is.
            None => !links.is_empty() || self.chooses(trace),
        };
        let decision = if chosen {
            SamplingDecision::RecordAndSample
        } else {
            SamplingDecision::Drop
        };
        SamplingResult {
            decision,
            attributes: Vec::new(),
            trace_state: TraceState::default(),
        }
    }
}

/// Generates ids like all others here; a trace id is a UUID.
#[derive(Debug)]
pub(crate) struct RandomIds;

impl IdGenerator for RandomIds {
    fn new_trace_id(&self) -> TraceId {
        Uuid::new_v4().as_u128().into()
    }

    fn new_span_id(&self) -> SpanId {
        let (_, random) = Uuid::new_v4().as_u64_pair();
        random.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_new_traces_is_about_what_was_asked_for() {
        for share in [0.0, 0.1, 0.5, 0.9, 1.0] {
            let sampling = Sampling::new(share);
            let traces = (0..20_000).map(|_| RandomIds.new_trace_id());
            let chosen = traces.filter(|trace| sampling.chooses(*trace)).count();
            let expected = 20_000.0 * share;
            let chosen = f64::from(u32::try_from(chosen).unwrap());
            assert!((chosen - expected).abs() < 500.0, "{share}: {chosen}");
        }
    }

    #[test]
    fn a_process_with_a_larger_share_records_what_the_others_do() {
        let (smaller, larger) = (Sampling::new(0.2), Sampling::new(0.6));
        for _ in 0..1_000 {
            let trace = RandomIds.new_trace_id();
            assert!(!smaller.chooses(trace) || larger.chooses(trace));
        }
    }
}
