//! One run, folded from its events.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use domain::run::{Reached, Ways};
use schemas::run::Way;
use schemas::workflow::Triggered;
use schemas::{Event, StepId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// The state of a run, or of one of its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum State {
    Queued,
    Running,
    Waiting,
    Succeeded,
    Failed,
    Cancelled,
    /// Of a step that no way leads to any more, or that the run ended without.
    Skipped,
}

impl State {
    const NAMES: [(Self, &'static str); 7] = [
        (Self::Queued, "QUEUED"),
        (Self::Running, "RUNNING"),
        (Self::Waiting, "WAITING"),
        (Self::Succeeded, "SUCCEEDED"),
        (Self::Failed, "FAILED"),
        (Self::Cancelled, "CANCELLED"),
        (Self::Skipped, "SKIPPED"),
    ];

    pub(super) fn name(self) -> &'static str {
        Self::NAMES[self as usize].1
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        let found = Self::NAMES.iter().find(|(_, known)| *known == name);
        found.map(|(state, _)| *state)
    }
}

/// The name and type of a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Outline {
    pub(super) id: StepId,
    #[serde(rename = "type")]
    pub(super) kind: String,
}

impl Outline {
    /// Whether the step may leave some of its ways aside.
    pub(super) fn branches(&self) -> bool {
        matches!(self.kind.as_str(), "CONDITION" | "WAIT_FOR_EVENT")
    }

    /// Whether an attempt does nothing but wait.
    fn waits(&self) -> bool {
        matches!(self.kind.as_str(), "DELAY" | "WAIT_FOR_EVENT")
    }
}

/// The definition that a run follows, as far as its reads go.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) steps: Vec<Outline>,
    /// The ways between them, where some step may leave a way aside.
    pub(super) ways: Option<Ways>,
}

/// A step as the API shows it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Step {
    #[serde(flatten)]
    outline: Outline,
    state: State,
    attempts: Vec<Attempt>,
    // Carried as text: they may be large, and nothing here looks into them.
    input: Option<Box<RawValue>>,
    output: Option<Box<RawValue>>,
    /// Which way the run went on from it, where that was not `next`.
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

/// What a run's trigger fixed.
#[derive(Debug)]
pub(super) struct Origin<'a> {
    pub(super) triggered: &'a Triggered,
}

/// A run as it reads.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) workflow_id: String,
    pub(super) workflow_version: u32,
    /// What it follows; of a run from before the batch only where steps may be skipped.
    pub(super) plan: Option<Arc<Plan>>,
    /// Set where the batch holds the run's trigger, so that its row has yet to be made.
    pub(super) origin: Option<Origin<'a>>,
    /// The state before the batch, where there was one.
    pub(super) before: Option<State>,
    pub(super) state: State,
    pub(super) created_at: DateTime<Utc>,
    pub(super) started_at: Option<DateTime<Utc>>,
    pub(super) ended_at: Option<DateTime<Utc>>,
    pub(super) error: Option<String>,
    pub(super) steps: Vec<Step>,
}

impl<'a> Run<'a> {
    /// A run that was asked for, with the steps of its definition.
    pub(super) fn triggered(triggered: &'a Triggered, at: DateTime<Utc>, plan: &Arc<Plan>) -> Self {
        let steps = plan.steps.iter().map(|outline| Step {
            outline: outline.clone(),
            state: State::Queued,
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

    /// Folds an event that happened at `at`; says what is wrong where it does not fit. What
    /// comes after the run's end, such as the outcome of an attempt that was under way, changes
    /// nothing, unless the run is retried.
    pub(super) fn fold(&mut self, event: &Event, at: DateTime<Utc>) -> Result<(), String> {
        if self.ended_at.is_some() {
            if let (Event::RunRetried(_), State::Failed | State::Cancelled) = (event, self.state) {
                self.begin_again();
            }
            return Ok(());
        }
        match event {
            Event::RunStarted(_) => {
                self.state = State::Running;
                self.started_at.get_or_insert(at);
            }
            Event::RunStepStarted(started) => {
                self.state = State::Running;
                let step = self.step(&started.step_id)?;
                step.state = if step.outline.waits() {
                    State::Waiting
                } else {
                    State::Running
                };
                step.input = raw(&started.input)?;
                step.attempt(started.attempt, at);
            }
            Event::RunStepSucceeded(succeeded) => {
                let step = self.step(&succeeded.step_id)?;
                step.state = State::Succeeded;
                step.way = succeeded.way;
                step.output = raw(&succeeded.output)?;
                step.attempt(succeeded.attempt, at).ended_at = Some(at);
                self.skip();
            }
            Event::RunStepFailed(failed) => {
                let retried = failed.retry_at.is_some();
                let step = self.step(&failed.step_id)?;
                step.state = if retried {
                    State::Waiting
                } else {
                    State::Failed
                };
                let attempt = step.attempt(failed.attempt, at);
                attempt.ended_at = Some(at);
                attempt.error = Some(failed.error.clone());
            }
            Event::RunWaiting(waiting) => {
                self.state = State::Waiting;
                self.step(&waiting.step_id)?.state = State::Waiting;
            }
            Event::RunSucceeded(_) => self.end(State::Succeeded, at),
            Event::RunFailed(failed) => {
                self.end(State::Failed, at);
                self.error = Some(failed.error.clone());
            }
            Event::RunCancelled(_) => self.end(State::Cancelled, at),
            // What a NOTIFY step says stands in the run's stream and changes nothing of the run.
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
            State::Queued | State::Skipped => Reached::Untouched,
            State::Succeeded => Reached::Left(step.way),
            _ => Reached::UnderWay,
        });
        for place in ways.skipped(&reached.collect::<Vec<_>>()) {
            self.steps[place].state = State::Skipped;
        }
    }

    /// Whatever has not succeeded is still to come.
    fn begin_again(&mut self) {
        self.state = State::Queued;
        self.ended_at = None;
        self.error = None;
        for step in &mut self.steps {
            if step.state != State::Succeeded {
                step.state = State::Queued;
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

    /// Nothing of an ended run looks as if it were still to come.
    fn end(&mut self, state: State, at: DateTime<Utc>) {
        self.state = state;
        self.ended_at = Some(at);
        for step in &mut self.steps {
            match step.state {
                State::Queued => step.state = State::Skipped,
                State::Running | State::Waiting => step.state = State::Cancelled,
                _ => {}
            }
            for attempt in &mut step.attempts {
                attempt.ended_at.get_or_insert(at);
            }
        }
    }
}

impl Step {
    /// The attempt of that number; a step that ends in a moment need not say that it began.
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
