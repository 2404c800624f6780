//! The metrics of runs.

use std::time::Duration;

use chrono::TimeDelta;
use metrics::{counter, gauge, histogram};
use schemas::{Event, NewEvent};

use super::capacity::Load;

const STARTED: &str = "waypost_runs_started_total";
const ENDED: &str = "waypost_runs_ended_total";
const OPEN: &str = "waypost_runs_open";
const LARGEST: &str = "waypost_runs_open_largest";
const UNDER_WAY: &str = "waypost_runs_under_way";
const WORKING: &str = "waypost_runs_working";
const CALLS: &str = "waypost_runs_calls";
const CALLS_WAITING: &str = "waypost_runs_calls_waiting";
const HELD: &str = "waypost_runs_held_bytes";
const BACKLOG: &str = "waypost_runs_backlog";
const DELAY: &str = "waypost_run_delay_seconds";
const STEP: &str = "waypost_run_step_duration_seconds";
const TRIGGERED: &str = "waypost_runs_triggered_total";
const UNJUDGED: &str = "waypost_triggers_failed_total";
const JUDGING: &str = "waypost_triggers_organizations";
const COMPILED: &str = "waypost_templates_bytes";
const EVALUATED: &str = "waypost_templates_work_total";
const UNEVALUATED: &str = "waypost_templates_refused_total";
const JUDGING_BYTES: &str = "waypost_triggers_held_bytes";
const FOLLOWED: &str = "waypost_runs_followed_sequence";

pub(super) fn describe() {
    metrics::describe_counter!(STARTED, "Runs that were started");
    metrics::describe_counter!(ENDED, "Runs ended, by state");
    metrics::describe_gauge!(OPEN, "Runs of this process that have not ended");
    metrics::describe_gauge!(
        LARGEST,
        "Runs of this process that have not ended, of the organization with the most of them"
    );
    metrics::describe_gauge!(
        UNDER_WAY,
        "Runs in memory: being worked on, or waiting for an answer"
    );
    metrics::describe_gauge!(WORKING, "Runs being worked on");
    metrics::describe_gauge!(CALLS, "HTTP calls of steps in progress");
    metrics::describe_gauge!(CALLS_WAITING, "HTTP calls of steps that wait for a place");
    metrics::describe_gauge!(
        HELD,
        metrics::Unit::Bytes,
        "Approximate memory held by runs that wait for answers"
    );
    metrics::describe_gauge!(BACKLOG, "Runs that wait to be started");
    metrics::describe_gauge!(FOLLOWED, "The last event of the log that was taken in");
    metrics::describe_counter!(TRIGGERED, "Runs triggered by events and schedules");
    metrics::describe_counter!(
        UNJUDGED,
        "Events that did not trigger a workflow, by reason: a failed filter, too many hops or runs \
         of one cause, or too many open runs"
    );
    metrics::describe_gauge!(
        JUDGING,
        "Organizations with events that wait to be matched against triggers"
    );
    metrics::describe_gauge!(
        COMPILED,
        metrics::Unit::Bytes,
        "Approximate memory of compiled templates, by kind"
    );
    metrics::describe_counter!(
        EVALUATED,
        "Units of work done for templates on threads of their own"
    );
    metrics::describe_counter!(
        UNEVALUATED,
        "Templates that were not fully evaluated, by reason: work, time or broken"
    );
    metrics::describe_gauge!(
        JUDGING_BYTES,
        metrics::Unit::Bytes,
        "Approximate memory of events that wait to be matched against triggers"
    );
    metrics::describe_histogram!(
        DELAY,
        metrics::Unit::Seconds,
        "Time from a trigger to its arrival at the runner"
    );
    metrics::describe_histogram!(
        STEP,
        metrics::Unit::Seconds,
        "Duration of steps that call out, by type and outcome"
    );
}

/// Counts what appended events say about their run.
pub(super) fn appended(events: &[NewEvent]) {
    for event in events {
        match &event.event {
            Event::RunStarted(_) => counter!(STARTED).increment(1),
            Event::RunSucceeded(_) => counter!(ENDED, "state" => "SUCCEEDED").increment(1),
            Event::RunFailed(_) => counter!(ENDED, "state" => "FAILED").increment(1),
            _ => {}
        }
    }
}

pub(super) fn triggered() {
    counter!(TRIGGERED).increment(1);
}

pub(super) fn unmatched(reason: &'static str) {
    counter!(UNJUDGED, "reason" => reason).increment(1);
}

/// Counts the units of work that one evaluation took.
pub(super) fn evaluated(units: u64) {
    counter!(EVALUATED).increment(units);
}

pub(super) fn unevaluated(reason: &'static str) {
    counter!(UNEVALUATED, "reason" => reason).increment(1);
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a gauge is a float; this stays far below 2^52"
)]
pub(super) fn compiled(kind: &'static str, bytes: usize) {
    gauge!(COMPILED, "kind" => kind).set(bytes as f64);
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a gauge is a float; this stays small"
)]
pub(super) fn matching(organizations: usize, bytes: usize) {
    gauge!(JUDGING).set(organizations as f64);
    gauge!(JUDGING_BYTES).set(bytes as f64);
}

pub(super) fn cancelled() {
    counter!(ENDED, "state" => "CANCELLED").increment(1);
}

pub(super) fn step(kind: &'static str, took: Duration, succeeded: bool) {
    let outcome = if succeeded { "succeeded" } else { "failed" };
    histogram!(STEP, "type" => kind, "outcome" => outcome).record(took.as_secs_f64());
}

/// Records how long a trigger took to get here.
pub(super) fn delay(delay: TimeDelta) {
    let delay = delay.to_std().unwrap_or_default();
    histogram!(DELAY).record(delay.as_secs_f64());
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a gauge is a float; these stay far below 2^52"
)]
pub(super) fn load(open: usize, under_way: usize, backlog: usize, followed: u64) {
    gauge!(OPEN).set(open as f64);
    gauge!(UNDER_WAY).set(under_way as f64);
    gauge!(BACKLOG).set(backlog as f64);
    gauge!(FOLLOWED).set(followed as f64);
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a gauge is a float; this stays far below 2^52"
)]
pub(super) fn largest(open: usize) {
    gauge!(LARGEST).set(open as f64);
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a gauge is a float; these stay far below 2^52"
)]
pub(super) fn capacity(load: Load) {
    gauge!(WORKING).set(load.working as f64);
    gauge!(CALLS).set(load.calls as f64);
    gauge!(CALLS_WAITING).set(load.calls_waiting as f64);
    gauge!(HELD).set(load.bytes as f64);
}
