//! One run, folded from its events.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use domain::run::{Reached, State, Ways};
use schemas::run::Way;
use schemas::workflow::{StepType, Triggered};
use schemas::{Event, StepId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// The state of a step as shown: a step in progress when the run ended says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum StepState {
    Queued,
    Running,
    Waiting,
    Succeeded,
    Failed,
    Cancelled,
    /// No way leads to it any more, or the run ended without it.
    Skipped,
}

/// The name and type of a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Outline {
    pub(super) id: StepId,
    #[serde(rename = "type")]
    pub(super) kind: StepType,
}

impl Outline {
    /// Whether the step may leave some of its ways out.
    pub(super) fn branches(&self) -> bool {
        matches!(self.kind, StepType::Condition | StepType::WaitForEvent)
    }

    /// Whether an attempt does nothing but wait.
    fn waits(&self) -> bool {
        matches!(self.kind, StepType::Delay | StepType::WaitForEvent)
    }
}

/// The definition that a run follows, as far as reads of the run need it.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) steps: Vec<Outline>,
    /// The ways between them, if some step may leave a way out.
    pub(super) ways: Option<Ways>,
}

/// A step as the API shows it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Step {
    #[serde(flatten)]
    outline: Outline,
    state: StepState,
    attempts: Vec<Attempt>,
    // Carried as text: they may be large, and nothing here parses them.
    input: Option<Box<RawValue>>,
    output: Option<Box<RawValue>>,
    /// The way that the run took from it, if that was not `next`.
    #[serde(default, skip_serializing_if = "is_next")]
    way: Way,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_next(way: &Way) -> bool {
    *way == Way::Next
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attempt {
    number: u32,
    started_at: DateTime<Utc>,
    ended_at: Option<DateTime<Utc>>,
    error: Option<String>,
}

/// What a run's trigger determined.
#[derive(Debug)]
pub(super) struct Origin<'a> {
    pub(super) triggered: &'a Triggered,
}

/// A run as shown by the API.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) workflow_id: String,
    pub(super) workflow_version: u32,
    /// The definition; for a run from before the batch only if steps may be skipped.
    pub(super) plan: Option<Arc<Plan>>,
    /// Set if the batch contains the run's trigger, so that its row has yet to be inserted.
    pub(super) origin: Option<Origin<'a>>,
    /// The state before the batch, if there was one.
    pub(super) before: Option<State>,
    pub(super) state: State,
    pub(super) created_at: DateTime<Utc>,
    pub(super) started_at: Option<DateTime<Utc>>,
    pub(super) ended_at: Option<DateTime<Utc>>,
    pub(super) error: Option<String>,
    pub(super) steps: Vec<Step>,
}

impl<'a> Run<'a> {
    /// A run that was triggered, with the steps of its definition.
    pub(super) fn triggered(triggered: &'a Triggered, at: DateTime<Utc>, plan: &Arc<Plan>) -> Self {
        let steps = plan.steps.iter().map(|outline| Step {
            outline: outline.clone(),
            state: StepState::Queued,
            attempts: Vec::new(),
            input: None,
            output: None,
            way: Way::Next,
        });
        Self {
            workflow_id: triggered.workflow_id.to_string(),
            workflow_version: triggered.workflow_version,
            plan: Some(Arc::clone(plan)),
            origin: Some(Origin { triggered }),
            before: None,
            state: State::Queued,
            created_at: at,
            started_at: None,
            ended_at: None,
            error: None,
            steps: steps.collect(),
        }
    }

    /// Folds an event that happened at `at`; returns what is wrong if it does not fit.
    pub(super) fn fold(&mut self, event: &Event, at: DateTime<Utc>) -> Result<(), String> {
        let before = self.state;
        self.state = before.after(event);
        if before.is_end() {
            if !self.state.is_end() {
                self.begin_again();
            }
            return Ok(());
        }
        match event {
            Event::RunStarted(_) => {
                self.started_at.get_or_insert(at);
            }
            Event::RunStepStarted(started) => {
                let step = self.step(&started.step_id)?;
                step.state = if step.outline.waits() {
                    StepState::Waiting
                } else {
                    StepState::Running
                };
                step.input = raw(&started.input)?;
                step.attempt(started.attempt, at);
            }
            Event::RunStepSucceeded(succeeded) => {
                let step = self.step(&succeeded.step_id)?;
                step.state = StepState::Succeeded;
                step.way = succeeded.way;
                step.output = raw(&succeeded.output)?;
                step.attempt(succeeded.attempt, at).ended_at = Some(at);
                self.skip();
            }
            Event::RunStepFailed(failed) => {
                let retried = failed.retry_at.is_some();
                let step = self.step(&failed.step_id)?;
                step.state = if retried {
                    StepState::Waiting
                } else {
                    StepState::Failed
                };
                let attempt = step.attempt(failed.attempt, at);
                attempt.ended_at = Some(at);
                attempt.error = Some(failed.error.clone());
            }
            Event::RunWaiting(waiting) => {
                self.step(&waiting.step_id)?.state = StepState::Waiting;
            }
            Event::RunSucceeded(_) | Event::RunCancelled(_) => self.end(at),
            Event::RunFailed(failed) => {
                self.end(at);
                self.error = Some(failed.error.clone());
            }
            // The message of a NOTIFY step is in the run's stream and does not change the run.
            _ => {}
        }
        Ok(())
    }

    /// Marks the steps that no way leads to any more.
    fn skip(&mut self) {
        let plan = self.plan.clone();
        let Some(ways) = plan.as_ref().and_then(|plan| plan.ways.as_ref()) else {
            return;
        };
        let reached = self.steps.iter().map(|step| match step.state {
            StepState::Queued | StepState::Skipped => Reached::Untouched,
            StepState::Succeeded => Reached::Left(step.way),
            _ => Reached::UnderWay,
        });
        for place in ways.skipped(&reached.collect::<Vec<_>>()) {
            self.steps[place].state = StepState::Skipped;
        }
    }

    /// Resets every step that has not succeeded.
    fn begin_again(&mut self) {
        self.ended_at = None;
        self.error = None;
        for step in &mut self.steps {
            if step.state != StepState::Succeeded {
                step.state = StepState::Queued;
            }
        }
        self.skip();
    }

    /// Whether some of its steps may be skipped before its end.
    pub(super) fn branches(&self) -> bool {
        self.steps.iter().any(|step| step.outline.branches())
    }

    fn step(&mut self, id: &StepId) -> Result<&mut Step, String> {
        let step = self.steps.iter_mut().find(|step| step.outline.id == *id);
        step.ok_or_else(|| "the run's definition has no such step".to_owned())
    }

    /// Ends the run, so that none of its steps looks as if it were still to come.
    fn end(&mut self, at: DateTime<Utc>) {
        self.ended_at = Some(at);
        for step in &mut self.steps {
            match step.state {
                StepState::Queued => step.state = StepState::Skipped,
                StepState::Running | StepState::Waiting => step.state = StepState::Cancelled,
                _ => {}
            }
            for attempt in &mut step.attempts {
                attempt.ended_at.get_or_insert(at);
            }
        }
    }
}

impl Step {
    /// Returns the attempt of that number; a step that ends at once need not say that it began.
    fn attempt(&mut self, number: u32, at: DateTime<Utc>) -> &mut Attempt {
        let known = self.attempts.iter().position(|one| one.number == number);
        let index = known.unwrap_or_else(|| {
            self.attempts.push(Attempt {
                number,
                started_at: at,
                ended_at: None,
                error: None,
            });
            self.attempts.len() - 1
        });
        &mut self.attempts[index]
    }
}

fn raw(value: &Value) -> Result<Option<Box<RawValue>>, String> {
    if value.is_null() {
        return Ok(None);
    }
    to_raw_value(value)
        .map(Some)
        .map_err(|error| error.to_string())
}
