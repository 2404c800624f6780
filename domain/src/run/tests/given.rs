//! Short forms for definitions and events.

use chrono::{DateTime, TimeDelta, Utc};
use schemas::run::Way;
use schemas::workflow::{
    Action, Condition, Definition, Delay, Http, Join, Notify, Retry, Status, Step, Trigger,
    Triggered, WaitForEvent,
};
use schemas::{Event, RunId, StepId, WorkflowId, run};
use serde_json::{Map, Value};

use crate::run::{End, Graph, Next, Run, next};

pub(super) const TIMEOUT_SECONDS: u64 = 3_600;

pub(super) fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::seconds(1_800_000_000 + seconds)
}

pub(super) fn retry(max_attempts: u32) -> Retry {
    Retry {
        max_attempts,
        initial_seconds: 1.0,
        max_seconds: 60.0,
    }
}

pub(super) fn trigger(next: &[&str]) -> Step {
    step("start", Action::Trigger(Trigger::default()), next)
}

pub(super) fn http(id: &str, next: &[&str]) -> Step {
    let http = Http {
        method: "POST".to_owned(),
        url: "https://crm.example/".to_owned(),
        headers: indexmap::IndexMap::new(),
        body: None,
        timeout_seconds: 15,
        retry: retry(3),
        accept_status: Vec::new(),
    };
    step(id, Action::Http(http), next)
}

pub(super) fn notify(id: &str, next: &[&str]) -> Step {
    let notify = Notify {
        event: "told".to_owned(),
        data: Map::new(),
    };
    step(id, Action::Notify(notify), next)
}

fn ids_of(ids: &[&str]) -> Vec<StepId> {
    ids.iter().map(|id| StepId::from(*id)).collect()
}

pub(super) fn condition(id: &str, then: &[&str], otherwise: &[&str]) -> Step {
    let condition = Condition {
        test: "trigger.hot".to_owned(),
        then: ids_of(then),
        otherwise: ids_of(otherwise),
    };
    step(id, Action::Condition(condition), &[])
}

pub(super) fn delay(id: &str, seconds: f64, next: &[&str]) -> Step {
    step(id, Action::Delay(Delay { seconds }), next)
}

pub(super) fn wait(id: &str, timeout: Option<f64>, next: &[&str], on_timeout: &[&str]) -> Step {
    let wait = WaitForEvent {
        event: "lead.updated".to_owned(),
        matching: None,
        timeout_seconds: timeout,
        on_timeout: ids_of(on_timeout),
    };
    step(id, Action::WaitForEvent(wait), next)
}

fn step(id: &str, action: Action, next: &[&str]) -> Step {
    Step {
        id: StepId::from(id),
        action,
        next: ids_of(next),
        join: Join::Any,
    }
}

pub(super) fn all(mut step: Step) -> Step {
    step.join = Join::All;
    step
}

pub(super) fn graph(steps: Vec<Step>) -> Graph {
    Graph::new(Definition {
        name: "Welcome a lead".to_owned(),
        status: Status::Active,
        timeout_seconds: TIMEOUT_SECONDS,
        steps,
    })
}

/// A run's events with their times, and their fold.
#[derive(Clone, Debug)]
pub(super) struct History {
    pub(super) events: Vec<(Event, DateTime<Utc>)>,
    pub(super) run: Run,
}

impl History {
    pub(super) fn triggered() -> Self {
        let triggered = Triggered {
            run_id: RunId::from("r1"),
            workflow_id: WorkflowId::from("w1"),
            workflow_version: 1,
            trigger_payload: Map::new(),
        };
        let run = Run::triggered(&triggered);
        let events = vec![(Event::WorkflowTriggered(triggered), at(0))];
        Self { events, run }
    }

    /// Started at second 0.
    pub(super) fn started() -> Self {
        Self::triggered().and(started(), at(0))
    }

    pub(super) fn and(mut self, event: Event, time: DateTime<Utc>) -> Self {
        self.push(event, time);
        self
    }

    pub(super) fn push(&mut self, event: Event, time: DateTime<Utc>) {
        self.run.apply(&event, time);
        self.events.push((event, time));
    }

    /// Which steps are to begin at a time, as `step/attempt`.
    pub(super) fn begins(&self, graph: &Graph, now: DateTime<Utc>) -> Vec<String> {
        match next(&self.run, graph, now) {
            Next::Work(work) => {
                let begin = work.begin.iter();
                begin
                    .map(|attempt| format!("{}/{}", attempt.step.id, attempt.number))
                    .collect()
            }
            other => panic!("no work but {other:?}"),
        }
    }

    pub(super) fn ends(&self, graph: &Graph, now: DateTime<Utc>) -> End {
        match next(&self.run, graph, now) {
            Next::End(end) => end,
            other => panic!("no end but {other:?}"),
        }
    }
}

fn ids() -> (RunId, WorkflowId) {
    (RunId::from("r1"), WorkflowId::from("w1"))
}

pub(super) fn started() -> Event {
    let (run_id, workflow_id) = ids();
    Event::RunStarted(run::Started {
        run_id,
        workflow_id,
    })
}

pub(super) fn begun(step: &str, attempt: u32) -> Event {
    let (run_id, workflow_id) = ids();
    let step_id = StepId::from(step);
    Event::RunStepStarted(run::StepStarted {
        run_id,
        workflow_id,
        step_id,
        attempt,
        input: Value::Null,
    })
}

pub(super) fn succeeded(step: &str, attempt: u32) -> Event {
    went(step, attempt, Way::Next)
}

pub(super) fn went(step: &str, attempt: u32, way: Way) -> Event {
    let (run_id, workflow_id) = ids();
    let step_id = StepId::from(step);
    let output = Value::from(attempt);
    Event::RunStepSucceeded(run::StepSucceeded {
        run_id,
        workflow_id,
        step_id,
        attempt,
        way,
        output,
    })
}

pub(super) fn failed(step: &str, attempt: u32, retry_at: Option<DateTime<Utc>>) -> Event {
    let (run_id, workflow_id) = ids();
    let (step_id, error) = (StepId::from(step), "HTTP 500".to_owned());
    Event::RunStepFailed(run::StepFailed {
        run_id,
        workflow_id,
        step_id,
        attempt,
        error,
        retry_at,
    })
}

pub(super) fn waits(step: &str, until: DateTime<Utc>) -> Event {
    let (run_id, workflow_id) = ids();
    Event::RunWaiting(run::Waiting {
        run_id,
        workflow_id,
        step_id: StepId::from(step),
        until,
    })
}

pub(super) fn ended(end: &End) -> Event {
    let (run_id, workflow_id) = ids();
    match end {
        End::Succeeded => Event::RunSucceeded(run::Succeeded {
            run_id,
            workflow_id,
        }),
        End::Failed(error) => Event::RunFailed(run::Failed {
            run_id,
            workflow_id,
            error: error.clone(),
        }),
    }
}
