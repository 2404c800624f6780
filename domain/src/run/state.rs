//! The fold of a run's events.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use schemas::run::Way;
use schemas::workflow::Triggered;
use schemas::{Event, Recorded, RunId, StepId, WorkflowId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::size::encoded_len;

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum State {
    /// Requested, not started yet.
    Queued,
    /// In progress.
    Running,
    /// In progress, but every open step waits for a time.
    Waiting,
    /// Ended successfully.
    Succeeded,
    /// Ended in failure.
    Failed,
    /// Cancelled.
    Cancelled,
}

impl State {
    const ALL: [Self; 6] = [
        Self::Queued,
        Self::Running,
        Self::Waiting,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The state with that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// The state of a run after one more event. Events after its end, such as the outcome of an
    /// attempt that was in progress, change nothing unless the run is retried. The events of its
    /// NOTIFY steps change nothing either.
    #[must_use]
    pub const fn after(self, event: &Event) -> Self {
        match (self, event) {
            (Self::Failed | Self::Cancelled, Event::RunRetried(_)) => Self::Queued,
            (Self::Succeeded | Self::Failed | Self::Cancelled, _) => self,
            (_, Event::RunStarted(_) | Event::RunStepStarted(_)) => Self::Running,
            (_, Event::RunWaiting(_)) => Self::Waiting,
            (_, Event::RunSucceeded(_)) => Self::Succeeded,
            (_, Event::RunFailed(_)) => Self::Failed,
            (_, Event::RunCancelled(_) | Event::RunForgotten(_)) => Self::Cancelled,
            _ => self,
        }
    }

    /// Its external name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "QUEUED",
            Self::Running => "RUNNING",
            Self::Waiting => "WAITING",
            Self::Succeeded => "SUCCEEDED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
        }
    }

    /// Whether nothing more will happen on its own.
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

/// The state of a step that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepState {
    /// An attempt began at this time and its outcome is not recorded.
    Running(DateTime<Utc>),
    /// The last attempt failed; the next begins at this time.
    Waiting(DateTime<Utc>),
    /// Ended successfully; the run continues by this way.
    Succeeded(Way),
    /// Failed permanently.
    Failed,
}

/// A step that has begun.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its state.
    pub state: StepState,
    /// The number of its last attempt.
    pub attempt: u32,
    /// How many attempts there had been when the run was last retried as a whole.
    pub attempts_before: u32,
    /// The output that later steps see.
    pub output: Arc<Value>,
    /// Why its last attempt failed, if it did.
    pub error: Option<String>,
}

/// A run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// Its workflow.
    pub workflow_id: WorkflowId,
    /// The definition that it follows.
    pub workflow_version: u32,
    /// The payload that it began with.
    pub trigger_payload: Arc<Map<String, Value>>,
    /// Its state.
    pub state: State,
    /// When it was started, at first or after it was last retried as a whole.
    pub started_at: Option<DateTime<Utc>>,
    /// The steps that have begun.
    pub steps: HashMap<StepId, Step>,
    /// Bytes, as JSON, of its payload and of the inputs, outputs and errors of all attempts.
    pub data: usize,
}

/// Why events do not make a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotARun {
    /// There are none.
    #[error("the run has no events")]
    Empty,
    /// The first is not a trigger.
    #[error("the run's first event is not its trigger")]
    NoTrigger,
    /// It was forgotten with a person: the events before are erased, or are about to be.
    #[error("the run was forgotten")]
    Forgotten,
}

impl Run {
    /// A run that was requested.
    pub fn triggered(triggered: &Triggered) -> Self {
        Self {
            id: triggered.run_id.clone(),
            workflow_id: triggered.workflow_id.clone(),
            workflow_version: triggered.workflow_version,
            trigger_payload: Arc::new(triggered.trigger_payload.clone()),
            state: State::Queued,
            started_at: None,
            steps: HashMap::new(),
            data: encoded_len(&triggered.trigger_payload),
        }
    }

    /// Folds a run from all its events.
    pub fn fold(events: &[Recorded]) -> Result<Self, NotARun> {
        let (first, rest) = events.split_first().ok_or(NotARun::Empty)?;
        let last = rest.last().unwrap_or(first);
        if matches!(last.event, Event::RunForgotten(_)) {
            return Err(NotARun::Forgotten);
        }
        let Event::WorkflowTriggered(triggered) = &first.event else {
            return Err(NotARun::NoTrigger);
        };
        let mut run = Self::triggered(triggered);
        for recorded in rest {
            run.apply(&recorded.event, recorded.time);
        }
        Ok(run)
    }

    /// Applies one more event, which happened at `at`.
    pub fn apply(&mut self, event: &Event, at: DateTime<Utc>) {
        let before = self.state;
        self.state = before.after(event);
        if before.is_end() {
            if !self.state.is_end() {
                self.begin_again(at);
            }
            return;
        }
        match event {
            Event::RunStarted(_) => {
                self.started_at.get_or_insert(at);
            }
            Event::RunStepStarted(event) => {
                let step = self.step(&event.step_id, at);
                step.state = StepState::Running(at);
                step.attempt = event.attempt;
                self.data += encoded_len(&event.input);
            }
            Event::RunStepSucceeded(event) => {
                let step = self.step(&event.step_id, at);
                step.state = StepState::Succeeded(event.way);
                step.attempt = event.attempt;
                step.output = Arc::new(event.output.clone());
                step.error = None;
                self.data += encoded_len(&event.output);
            }
            Event::RunStepFailed(event) => {
                let step = self.step(&event.step_id, at);
                step.state = event.retry_at.map_or(StepState::Failed, StepState::Waiting);
                step.attempt = event.attempt;
                step.error = Some(event.error.clone());
                self.data += event.error.len();
            }
            _ => {}
        }
    }

    /// Restarts everything that had begun and has not succeeded, at once.
    fn begin_again(&mut self, at: DateTime<Utc>) {
        self.started_at = None;
        for step in self.steps.values_mut() {
            if !matches!(step.state, StepState::Succeeded(_)) {
                step.state = StepState::Waiting(at);
                step.attempts_before = step.attempt;
            }
        }
    }

    fn step(&mut self, id: &StepId, at: DateTime<Utc>) -> &mut Step {
        self.steps.entry(id.clone()).or_insert_with(|| Step {
            state: StepState::Running(at),
            attempt: 0,
            attempts_before: 0,
            output: Arc::default(),
            error: None,
        })
    }
}
