//! A run as it is known to its job, and the events that the job is about to append.

use chrono::{DateTime, Utc};
use domain::run::{End, NotARun, Run};
use event_log::{Commit, Expected, Write};
use schemas::run::{Failed, Started, StepFailed, StepStarted, StepSucceeded, Succeeded, Waiting};
use schemas::{Context, Event, EventId, NewEvent, Recorded, StepId, StreamId, Traceparent};
use serde_json::Value;
use uuid::Uuid;

/// A run with the events that are decided but not yet appended; its state has them already.
pub(super) struct Draft {
    pub(super) stream: StreamId,
    pub(super) run: Run,
    /// The sequence of its last event in the log.
    pub(super) sequence: u64,
    events: Vec<NewEvent>,
    context: Context,
}

impl Draft {
    /// A run from its events as they stand in the log.
    pub(super) fn from_events(events: &[Recorded]) -> Result<Self, NotARun> {
        let run = Run::fold(events)?;
        let last = events.last().ok_or(NotARun::Empty)?;
        Ok(Self {
            stream: last.stream.clone(),
            run,
            sequence: last.sequence,
            events: Vec::new(),
            context: Context::caused_by(last),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// The trace that the run belongs to, under a span of its own.
    pub(super) fn child_trace(&self) -> Traceparent {
        let (high, low) = Uuid::new_v4().as_u64_pair();
        match &self.context.traceparent {
            Some(trace) => trace.with_span(low),
            None => Traceparent::from_parts(u128::from(high) << 64 | u128::from(low), low),
        }
    }

    /// Decides an event. Each is the cause of the next.
    pub(super) fn push(&mut self, event: Event, now: DateTime<Utc>) {
        self.run.apply(&event, now);
        let id = EventId(Uuid::now_v7());
        self.events.push(NewEvent {
            id,
            time: now,
            event,
            context: self.context.clone(),
            receipt: None,
        });
        self.context.causation_id = Some(id.to_string());
    }

    /// The events as one commit behind what is known of the run.
    pub(super) fn commit(&self) -> Commit {
        Commit::from(Write {
            stream: self.stream.clone(),
            expected: Expected::At(self.sequence),
            events: self.events.clone(),
        })
    }

    /// The commit is in the log, up to this sequence.
    pub(super) fn appended(&mut self, sequence: u64) {
        self.sequence = sequence;
        self.events.clear();
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

    pub(super) fn step_succeeded(
        &mut self,
        step: &StepId,
        attempt: u32,
        output: Value,
        now: DateTime<Utc>,
    ) {
        let (run_id, workflow_id) = self.ids();
        let event = StepSucceeded {
            run_id,
            workflow_id,
            step_id: step.clone(),
            attempt,
            output,
        };
        self.push(Event::RunStepSucceeded(event), now);
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
