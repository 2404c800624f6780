//! What the runs part counts.

use std::time::Duration;

use chrono::TimeDelta;
use event_log::Commit;
use metrics::{counter, gauge, histogram};
use schemas::Event;

const STARTED: &str = "waypost_runs_started_total";
const ENDED: &str = "waypost_runs_ended_total";
const OPEN: &str = "waypost_runs_open";
const UNDER_WAY: &str = "waypost_runs_under_way";
const BACKLOG: &str = "waypost_runs_backlog";
const DELAY: &str = "waypost_run_delay_seconds";
const STEP: &str = "waypost_run_step_duration_seconds";
const TRIGGERED: &str = "waypost_runs_triggered_total";
const UNJUDGED: &str = "waypost_triggers_failed_total";
const JUDGING: &str = "waypost_triggers_organizations";
const FOLLOWED: &str = "waypost_runs_followed_sequence";

pub(super) fn describe() {
    metrics::describe_counter!(STARTED, "Runs taken up");
    metrics::describe_counter!(ENDED, "Runs ended, by state");
    metrics::describe_gauge!(OPEN, "Runs of this process that have not ended");
    metrics::describe_gauge!(UNDER_WAY, "Runs being carried out at this moment");
    metrics::describe_gauge!(BACKLOG, "Runs that wait for room to be carried out");
    metrics::describe_gauge!(FOLLOWED, "The last event of the log that was taken in");
    metrics::describe_counter!(TRIGGERED, "Runs that an event or the clock has begun");
    metrics::describe_counter!(
        UNJUDGED,
        "Events that set nothing off, by reason: an expression failed, or too many hops"
    );
    metrics::describe_gauge!(JUDGING, "Organizations with events that are to be judged");
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

/// Counts what a commit says about its run.
pub(super) fn appended(commit: &Commit) {
    for event in commit.writes.iter().flat_map(|write| &write.events) {
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

pub(super) fn unjudged(reason: &'static str) {
    counter!(UNJUDGED, "reason" => reason).increment(1);
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a gauge is a float; this stays small"
)]
pub(super) fn judging(organizations: usize) {
    gauge!(JUDGING).set(organizations as f64);
}

pub(super) fn cancelled() {
    counter!(ENDED, "state" => "CANCELLED").increment(1);
}

pub(super) fn step(kind: &'static str, took: Duration, succeeded: bool) {
    let outcome = if succeeded { "succeeded" } else { "failed" };
    histogram!(STEP, "type" => kind, "outcome" => outcome).record(took.as_secs_f64());
}

/// How long a trigger took to get here.
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
