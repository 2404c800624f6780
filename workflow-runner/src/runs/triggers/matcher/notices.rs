//! Notifies an organization that an event, or a time of its schedule, did not set a workflow off,
//! or that it cannot be decided whether a step waited for an event.
//!
//! Each notice has a permanent name of its own, so that it is given once, however often and by
//! however many processes the event is matched.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, Utc};
use domain::run::Run;
use event_log::{Commit, Expected, Write};
use schemas::workflow::{NotTriggered, WhyNot};
use schemas::{
    AggregateType, Cause, Context, Event, EventId, NewEvent, OrgId, Recorded, RunId, StepId,
    StreamId, WorkflowId,
};

use super::super::super::measure;
use super::super::cause_counts::{Bound, MAX_HOPS};
use super::super::workflows::{Listener, Scheduled};
use super::Matcher;

/// How often a workflow is notified of what does not concern a single cause.
const EVERY_SECONDS: i64 = 3_600;
/// Workflows known to have been notified of a failed match. The log knows them all: beyond this
/// number, some are looked up there again.
const HELD: usize = 10_000;
/// The event type used for a time of a schedule.
const SCHEDULE: &str = "schedule";

/// What would have set a workflow off, or let a step continue.
struct Source<'s> {
    org: &'s OrgId,
    id: EventId,
    kind: Cow<'static, str>,
    time: DateTime<Utc>,
    cause: Cause,
    context: Context,
}

impl<'s> Source<'s> {
    fn event(by: &'s Recorded) -> Self {
        Self {
            org: &by.stream.org,
            id: by.id,
            kind: by.event.name(),
            time: by.time,
            cause: cause_of(by),
            context: Context::caused_by(by),
        }
    }

    /// A time of a schedule goes back to the event that saved it.
    fn clock(org: &'s OrgId, scheduled: &Scheduled, due: DateTime<Utc>) -> Self {
        Self {
            org,
            id: scheduled.saved_by,
            kind: Cow::Borrowed(SCHEDULE),
            time: due,
            cause: Cause::new(scheduled.saved_by.0),
            context: Context::default(),
        }
    }

    fn hour(&self) -> i64 {
        self.time.timestamp().div_euclid(EVERY_SECONDS)
    }
}

/// Why it did not.
struct Reason {
    why: WhyNot,
    limit: Option<u32>,
    error: Option<String>,
    /// The waiting step, if it is one.
    waiting: Option<(RunId, StepId)>,
    /// What the notice is unique for, besides the reason.
    of: String,
}

/// The versions of workflows that were notified of failed matches in an hour.
#[derive(Debug, Default)]
pub(in crate::runs::triggers) struct MatchNotices {
    hour: i64,
    notified: HashSet<(OrgId, WorkflowId, u32)>,
}

impl MatchNotices {
    /// Whether it is the first time within an hour, as far as is known here.
    fn is_first(&mut self, hour: i64, of: (OrgId, WorkflowId, u32)) -> bool {
        if self.hour != hour || self.notified.len() >= HELD {
            self.hour = hour;
            self.notified.clear();
        }
        self.notified.insert(of)
    }
}

impl Matcher {
    /// Reports that an event's cause has already led to too much; the `nth` time.
    pub(super) fn bound_met(
        &self,
        by: &Recorded,
        listener: &Listener,
        bound: Bound,
        nth: u8,
    ) -> Commit {
        let cause = cause_of(by);
        let (workflow, sequence) = (listener.workflow.as_str(), by.sequence);
        tracing::warn!(
            workflow,
            sequence,
            cause = %cause.id,
            ?bound,
            "Stopped a loop of workflows that trigger each other"
        );
        let limit = match bound {
            Bound::Hops => MAX_HOPS.into(),
            Bound::Runs => self.budget,
        };
        let reason = Reason {
            why: bound.into(),
            limit: Some(limit),
            error: None,
            waiting: None,
            of: format!("{}-{nth}", cause.id),
        };
        self.not_triggered(&Source::event(by), &listener.workflow, reason)
    }

    /// Reports that a workflow's filter failed for an event, or was too much work; `None` if that
    /// was reported within the hour.
    pub(super) fn filter_failed(
        &self,
        by: &Recorded,
        listener: &Listener,
        error: String,
    ) -> Option<Commit> {
        let (workflow, version) = (listener.workflow.as_str(), listener.version);
        let sequence = by.sequence;
        tracing::warn!(
            workflow,
            version,
            sequence,
            error,
            "A trigger's filter failed for an event"
        );
        measure::unmatched(WhyNot::Filter.name());
        let (source, reported) = (Source::event(by), &listener.notified.filter);
        let reason = Reason {
            why: WhyNot::Filter,
            limit: None,
            error: Some(error),
            waiting: None,
            of: every_hour(&listener.workflow, version, source.hour()),
        };
        is_first(reported, source.hour())
            .then(|| self.not_triggered(&source, &listener.workflow, reason))
    }

    /// Reports that the organization has as many open runs as it may have; `None` if that was
    /// reported within the hour.
    pub(super) fn too_many_open(&self, by: &Recorded, listener: &Listener) -> Option<Commit> {
        let reported = &listener.notified.open_runs;
        let of = (&listener.workflow, listener.version);
        self.full(&Source::event(by), of, reported)
    }

    /// The same for a time of a schedule.
    pub(in crate::runs::triggers) fn too_many_open_at(
        &self,
        org: &OrgId,
        scheduled: &Scheduled,
        due: DateTime<Utc>,
    ) -> Option<Commit> {
        let source = Source::clock(org, scheduled, due);
        let of = (&scheduled.workflow, scheduled.version);
        self.full(&source, of, &scheduled.notified)
    }

    fn full(
        &self,
        source: &Source<'_>,
        (workflow, version): (&WorkflowId, u32),
        reported: &AtomicI64,
    ) -> Option<Commit> {
        measure::unmatched(WhyNot::OpenRuns.name());
        let reason = Reason {
            why: WhyNot::OpenRuns,
            limit: Some(self.open_runs.most()),
            error: None,
            waiting: None,
            of: every_hour(workflow, version, source.hour()),
        };
        is_first(reported, source.hour()).then(|| self.not_triggered(source, workflow, reason))
    }

    /// Reports that the match of a waiting step failed for an event, or was too much work; `None`
    /// if that was reported for the workflow within the hour.
    pub(in crate::runs::triggers) fn match_failed(
        &self,
        by: &Recorded,
        run: &Run,
        step: &StepId,
        error: String,
    ) -> Option<Commit> {
        measure::unmatched(WhyNot::Match.name());
        let (workflow, version) = (&run.workflow_id, run.workflow_version);
        tracing::warn!(
            run = run.id.as_str(),
            step = step.as_str(),
            error,
            "A step's match failed for an event"
        );
        let source = Source::event(by);
        let of = (source.org.clone(), workflow.clone(), version);
        let matches = self.match_notices.lock();
        let mut matches = matches.unwrap_or_else(PoisonError::into_inner);
        let is_first = matches.is_first(source.hour(), of);
        let reason = Reason {
            why: WhyNot::Match,
            limit: None,
            error: Some(error),
            waiting: Some((run.id.clone(), step.clone())),
            of: every_hour(workflow, version, source.hour()),
        };
        is_first.then(|| self.not_triggered(&source, workflow, reason))
    }

    fn not_triggered(&self, by: &Source<'_>, workflow: &WorkflowId, reason: Reason) -> Commit {
        let Reason {
            why,
            limit,
            error,
            waiting,
            of,
        } = reason;
        let named = why.name();
        let parts = [by.org.as_str().as_bytes(), of.as_bytes(), named.as_bytes()];
        let id = self.log.keyring().derived_uuid("not triggered", &parts);
        let context = Context {
            cause: Some(by.cause),
            ..by.context.clone()
        };
        let (run_id, step_id) = waiting.unzip();
        let notice = NotTriggered {
            workflow_id: workflow.clone(),
            reason: why,
            limit,
            error,
            run_id,
            step_id,
            event_id: by.id,
            event_type: by.kind.clone().into_owned(),
            cause_id: EventId(by.cause.id),
            correlation_id: context.correlation_id.clone(),
        };
        Commit::from(Write {
            stream: StreamId::new(by.org, AggregateType::Cause, format!("{of}-{named}")),
            expected: Expected::Empty,
            events: vec![NewEvent {
                id: EventId(id),
                time: self.clock.now(),
                event: Event::WorkflowNotTriggered(notice),
                context,
                receipt: None,
            }],
        })
    }
}

/// Identifies what is reported once an hour for a version of a workflow.
fn every_hour(workflow: &WorkflowId, version: u32, hour: i64) -> String {
    format!("{workflow}-{version}-{hour}")
}

/// Whether nothing was reported in this hour.
fn is_first(reported: &AtomicI64, hour: i64) -> bool {
    reported.fetch_max(hour, Ordering::Relaxed) < hour
}

fn cause_of(by: &Recorded) -> Cause {
    Cause::of(by).unwrap_or(Cause::new(by.id.0))
}
