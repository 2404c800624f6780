//! A run as it is known to its job, and the events that the job is about to append.

use chrono::{DateTime, Utc};
use domain::run::{Attempt, End, NotARun, Run, Step, StepState, end_of_wait};
use event_log::{Commit, Expected, Keyring, Write};
use schemas::run::{
    EventAwaited, Failed, Started, StepFailed, StepStarted, StepSucceeded, Succeeded, Waiting, Way,
};
use schemas::workflow::Triggered;
use schemas::{
    Actor, Cause, Context, Event, EventId, NewEvent, Recorded, StepId, StreamId, Traceparent,
};
use serde_json::Value;
use traces::{Span, SpanKind};
use uuid::Uuid;

use super::program::Program;

/// A run with the events that are decided but not yet appended; its state includes them already.
pub(super) struct Draft {
    pub(super) stream: StreamId,
    pub(super) run: Run,
    /// The sequence of its last event in the log.
    pub(super) sequence: u64,
    events: Vec<NewEvent>,
    /// Other writes in the same commit, besides the run's own events.
    beside: Vec<Write>,
    context: Context,
}

impl Draft {
    /// Creates a run from its events in the log.
    pub(super) fn from_events(events: &[Recorded]) -> Result<Self, NotARun> {
        let run = Run::fold(events)?;
        let last = events.last().ok_or(NotARun::Empty)?;
        Ok(Self {
            stream: last.stream.clone(),
            run,
            sequence: last.sequence,
            events: Vec::new(),
            beside: Vec::new(),
            context: Context::caused_by(last),
        })
    }

    /// As much of a run as follows from the event that opened it.
    pub(super) fn opened_by(opening: &Recorded) -> Result<Self, NotARun> {
        let run = match &opening.event {
            Event::WorkflowTriggered(triggered) => Run::triggered(triggered),
            Event::RunRetried(retried) => Run::triggered(&Triggered {
                run_id: retried.run_id.clone(),
                workflow_id: retried.workflow_id.clone(),
                workflow_version: 0,
                trigger_payload: serde_json::Map::new(),
            }),
            _ => return Err(NotARun::NoTrigger),
        };
        Ok(Self {
            stream: opening.stream.clone(),
            run,
            sequence: opening.sequence,
            events: Vec::new(),
            beside: Vec::new(),
            context: Context::caused_by(opening),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// The run's own events that are not appended yet.
    pub(super) fn events(&self) -> &[NewEvent] {
        &self.events
    }

    /// Whether an attempt has begun and its outcome is not recorded.
    pub(super) fn is_open(&self, step: &StepId, attempt: u32) -> bool {
        let found = self.run.steps.get(step);
        let open =
            |step: &Step| matches!(step.state, StepState::Running(_)) && step.attempt == attempt;
        !self.run.state.is_end() && found.is_some_and(open)
    }

    /// When the wait of a running step ends on its own.
    pub(super) fn end_of_wait(&self, program: &Program, id: &StepId) -> Option<DateTime<Utc>> {
        let StepState::Running(since) = self.run.steps.get(id)?.state else {
            return None;
        };
        let mut steps = program.graph.definition().steps.iter();
        let step = steps.find(|step| step.id == *id)?;
        end_of_wait(step, since).map(|(until, _)| until)
    }

    /// The trace that the run belongs to, under a new span.
    pub(super) fn child_trace(&self) -> Traceparent {
        let (high, low) = Uuid::new_v4().as_u64_pair();
        match &self.context.traceparent {
            Some(trace) => trace.with_span(low),
            None => Traceparent::from_parts(u128::from(high) << 64 | u128::from(low), low),
        }
    }

    /// The span of an attempt at a step, in the trace that the run belongs to.
    pub(super) fn span_of(&self, attempt: &Attempt<'_>) -> Span {
        let trace = self.context.traceparent.as_ref();
        let span = traces::follow("step", SpanKind::Internal, trace);
        span.rename(|| format!("step {}", attempt.step.action.step_type().name()));
        span.note("waypost.run.id", || self.run.id.to_string());
        span.note("waypost.workflow.id", || self.run.workflow_id.to_string());
        span.note("waypost.step.id", || attempt.step.id.to_string());
        span.note("waypost.attempt", || i64::from(attempt.number));
        span
    }

    /// The run's cause: itself, if it was started from outside.
    pub(super) fn cause(&self) -> Cause {
        let cause = self.context.cause;
        cause.unwrap_or_else(|| Cause::of_run(&self.stream.id))
    }

    /// The cause header of the run's calls, so that counting continues if a call leads back here.
    pub(super) fn cause_header(&self, keyring: &Keyring) -> String {
        keyring.cause_header(&self.context, self.cause())
    }

    /// Decides an event. Each is the cause of the next.
    pub(super) fn push(&mut self, event: Event, now: DateTime<Utc>) {
        self.run.apply(&event, now);
        let event = self.new_event(event, now);
        self.events.push(event);
    }

    fn new_event(&mut self, event: Event, now: DateTime<Utc>) -> NewEvent {
        let id = EventId(Uuid::now_v7());
        let new = NewEvent {
            id,
            time: now,
            event,
            context: self.context.clone(),
            receipt: None,
        };
        self.context.causation_id = Some(id.to_string());
        new
    }

    /// Decides an event of another aggregate.
    pub(super) fn push_beside(
        &mut self,
        stream: StreamId,
        expected: Expected,
        event: Event,
        now: DateTime<Utc>,
    ) {
        let mut event = self.new_event(event, now);
        // Its own stream does not show that a run has written it.
        event.context.cause = Some(self.cause());
        event.context.actor = Some(Actor::Run(self.stream.id.clone()));
        let events = vec![event];
        self.beside.push(Write {
            stream,
            expected,
            events,
        });
    }

    /// Whether the commit already writes to this aggregate.
    pub(super) fn touches(&self, stream: &StreamId) -> bool {
        self.beside.iter().any(|write| write.stream == *stream)
    }

    /// The events as one commit after the known end of the run. The run's own come last, so that
    /// the commit's position is the run's.
    pub(super) fn commit(&self) -> Commit {
        let own = Write {
            stream: self.stream.clone(),
            expected: Expected::At(self.sequence),
            events: self.events.clone(),
        };
        let mut writes = self.beside.clone();
        writes.push(own);
        Commit { writes }
    }

    /// Records that the commit was appended, up to this sequence.
    pub(super) fn appended(&mut self, sequence: u64) {
        self.sequence = sequence;
        self.events.clear();
        self.beside.clear();
    }

    /// Takes the outcomes that were decided for attempts at some steps; not for those that were
    /// begun with them. Nothing else of what was decided is of further use.
    pub(super) fn take_outcomes(&mut self, of: impl Fn(&StepId) -> bool) -> Vec<Event> {
        let events: Vec<Event> = self.events.drain(..).map(|new| new.event).collect();
        let begun = events.iter().filter_map(|event| match event {
            Event::RunStepStarted(begun) => Some((begun.step_id.clone(), begun.attempt)),
            _ => None,
        });
        let begun: Vec<_> = begun.collect();
        let is_kept = |event: &Event| {
            outcome_of(event).is_some_and(|(step, attempt)| {
                let is_new = |(id, number): &(StepId, u32)| id == step && *number == attempt;
                of(step) && !begun.iter().any(is_new)
            })
        };
        events.into_iter().filter(is_kept).collect()
    }

    /// Decides such outcomes again, where their attempts are still open.
    pub(super) fn keep(&mut self, outcomes: Vec<Event>, now: DateTime<Utc>) {
        for event in outcomes {
            if outcome_of(&event).is_some_and(|(step, attempt)| self.is_open(step, attempt)) {
                self.push(event, now);
            }
        }
    }

    pub(super) fn started(&mut self, now: DateTime<Utc>) {
        let (run_id, workflow_id) = self.ids();
        self.push(
            Event::RunStarted(Started {
                run_id,
                workflow_id,
            }),
            now,
        );
    }

    pub(super) fn step_started(
        &mut self,
        step: &StepId,
        attempt: u32,
        input: Value,
        now: DateTime<Utc>,
    ) {
        let (run_id, workflow_id) = self.ids();
        let event = StepStarted {
            run_id,
            workflow_id,
            step_id: step.clone(),
            attempt,
            input,
        };
        self.push(Event::RunStepStarted(event), now);
    }

    pub(super) fn event_awaited(
        &mut self,
        step: &StepId,
        attempt: u32,
        event: String,
        now: DateTime<Utc>,
    ) {
        let (run_id, workflow_id) = self.ids();
        let event = EventAwaited {
            run_id,
            workflow_id,
            step_id: step.clone(),
            attempt,
            event,
        };
        self.push(Event::RunEventAwaited(event), now);
    }

    pub(super) fn step_succeeded(
        &mut self,
        step: &StepId,
        attempt: u32,
        (way, output): (Way, Value),
        now: DateTime<Utc>,
    ) {
        let (run_id, workflow_id) = self.ids();
        let event = StepSucceeded {
            run_id,
            workflow_id,
            step_id: step.clone(),
            attempt,
            way,
            output,
        };
        self.push(Event::RunStepSucceeded(event), now);
    }

    /// Decides that a step has succeeded with what has come from outside; it has failed if that is
    /// too much for the run.
    pub(super) fn step_answered(
        &mut self,
        step: &StepId,
        attempt: u32,
        outcome: (Way, Value),
        now: DateTime<Utc>,
    ) {
        match self.run.room_for(&outcome.1) {
            Ok(()) => self.step_succeeded(step, attempt, outcome, now),
            Err(error) => self.step_failed(step, attempt, error.to_string(), None, now),
        }
    }

    pub(super) fn step_failed(
        &mut self,
        step: &StepId,
        attempt: u32,
        error: String,
        retry_at: Option<DateTime<Utc>>,
        now: DateTime<Utc>,
    ) {
        let (run_id, workflow_id) = self.ids();
        let event = StepFailed {
            run_id,
            workflow_id,
            step_id: step.clone(),
            attempt,
            error,
            retry_at,
        };
        self.push(Event::RunStepFailed(event), now);
    }

    pub(super) fn waits(&mut self, step: &StepId, until: DateTime<Utc>, now: DateTime<Utc>) {
        let (run_id, workflow_id) = self.ids();
        let event = Waiting {
            run_id,
            workflow_id,
            step_id: step.clone(),
            until,
        };
        self.push(Event::RunWaiting(event), now);
    }

    pub(super) fn ended(&mut self, end: End, now: DateTime<Utc>) {
        let (run_id, workflow_id) = self.ids();
        let event = match end {
            End::Succeeded => Event::RunSucceeded(Succeeded {
                run_id,
                workflow_id,
            }),
            End::Failed(error) => Event::RunFailed(Failed {
                run_id,
                workflow_id,
                error,
            }),
        };
        self.push(event, now);
    }

    fn ids(&self) -> (schemas::RunId, schemas::WorkflowId) {
        (self.run.id.clone(), self.run.workflow_id.clone())
    }
}

/// The attempt whose outcome an event is.
fn outcome_of(event: &Event) -> Option<(&StepId, u32)> {
    match event {
        Event::RunStepSucceeded(ended) => Some((&ended.step_id, ended.attempt)),
        Event::RunStepFailed(ended) => Some((&ended.step_id, ended.attempt)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
