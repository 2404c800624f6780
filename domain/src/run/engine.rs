//! Decides what happens next in a run.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use schemas::run::Way;
use schemas::workflow::Action;
use schemas::{StepId, workflow};

use super::graph::{Graph, StepStates};
use super::{Run, State, StepState};

/// The next action of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Next<'g> {
    /// The run is to start: record that, then ask again.
    Start,
    /// There is something to do or to wait for.
    Work(Work<'g>),
    /// The run is to end: record that.
    End(End),
    /// The run has ended.
    Ended,
}

/// The work of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Work<'g> {
    /// Attempts to begin now: record that, then carry them out.
    pub begin: Vec<Attempt<'g>>,
    /// Attempts that have begun and whose outcome is not recorded. The run's owner carries them
    /// out, again if need be: a previous owner may have crashed during them.
    pub open: Vec<Attempt<'g>>,
    /// Waits that are over: record their success by this way.
    pub over: Vec<(Attempt<'g>, Way)>,
    /// The waiting step that continues first.
    pub waiting: Option<Waiting>,
    /// When the run fails if it has not ended.
    pub deadline: DateTime<Utc>,
}

impl Work<'_> {
    /// Whether there is nothing to do but wait.
    pub fn only_waits(&self) -> bool {
        self.begin.is_empty() && self.open.is_empty() && self.over.is_empty()
    }

    /// When to ask again even if nothing has happened.
    pub fn wake_at(&self) -> DateTime<Utc> {
        let waiting = self.waiting.as_ref().map(|waiting| waiting.until);
        waiting.map_or(self.deadline, |until| until.min(self.deadline))
    }
}

/// An attempt at a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attempt<'g> {
    /// The step.
    pub step: &'g workflow::Step,
    /// The attempt's number, from 1.
    pub number: u32,
}

/// A step that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The step.
    pub step: StepId,
    /// When it continues.
    pub until: DateTime<Utc>,
}

/// How a run ends without being cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Every step that could run has succeeded.
    Succeeded,
    /// A step failed permanently, time ran out, or nothing could begin.
    Failed(String),
}

/// Decides from a run's events, its definition and the time alone.
pub fn next<'g>(run: &Run, graph: &'g Graph, now: DateTime<Utc>) -> Next<'g> {
    let started_at = match (run.state, run.started_at) {
        (State::Succeeded | State::Failed | State::Cancelled, _) => return Next::Ended,
        (_, None) => return Next::Start,
        (_, Some(started_at)) => started_at,
    };
    let deadline = deadline(started_at, graph);
    let states = graph.states(run);
    if let Some(failed) = failed_step(run, graph, &states) {
        return Next::End(End::Failed(failed));
    }
    if deadline <= now {
        let seconds = graph.definition().timeout_seconds;
        let reason = format!("the run did not end within its {seconds} seconds");
        return Next::End(End::Failed(reason));
    }
    let work = work(run, graph, &states, now, deadline);
    if !work.only_waits() || work.waiting.is_some() {
        return Next::Work(work);
    }
    Next::End(if run.steps.is_empty() {
        End::Failed("the workflow has no TRIGGER step".to_owned())
    } else {
        End::Succeeded
    })
}

fn deadline(started_at: DateTime<Utc>, graph: &Graph) -> DateTime<Utc> {
    let seconds = i64::try_from(graph.definition().timeout_seconds).ok();
    let timeout = seconds.and_then(TimeDelta::try_seconds);
    timeout
        .and_then(|timeout| started_at.checked_add_signed(timeout))
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}

fn failed_step(run: &Run, graph: &Graph, states: &StepStates) -> Option<String> {
    let mut places = states.places();
    let place = places.find(|place| states.of(*place) == Some(StepState::Failed))?;
    let id = &graph.step(place).id;
    let error = run.steps.get(id).and_then(|step| step.error.as_deref());
    Some(format!("step {id}: {}", error.unwrap_or("failed")))
}

fn work<'g>(
    run: &Run,
    graph: &'g Graph,
    states: &StepStates,
    now: DateTime<Utc>,
    deadline: DateTime<Utc>,
) -> Work<'g> {
    let attempt = |place: usize, further: u32| {
        let step = graph.step(place);
        let last = run.steps.get(&step.id).map_or(0, |step| step.attempt);
        let number = last.saturating_add(further);
        Attempt { step, number }
    };
    let mut work = Work {
        begin: Vec::new(),
        open: Vec::new(),
        over: Vec::new(),
        waiting: None,
        deadline,
    };
    let mut first: Option<(usize, DateTime<Utc>)> = None;
    for place in states.places() {
        let until = match states.of(place) {
            Some(StepState::Running(since)) => match end_of_wait(graph.step(place), since) {
                None => {
                    work.open.push(attempt(place, 0));
                    continue;
                }
                Some((until, way)) if until <= now => {
                    work.over.push((attempt(place, 0), way));
                    continue;
                }
                Some((until, _)) => until,
            },
            Some(StepState::Waiting(until)) if until <= now => {
                work.begin.push(attempt(place, 1));
                continue;
            }
            Some(StepState::Waiting(until)) => until,
            Some(StepState::Succeeded(_) | StepState::Failed) | None => continue,
        };
        if first.is_none_or(|(_, earliest)| until < earliest) {
            first = Some((place, until));
        }
    }
    work.waiting = first.map(|(place, until)| Waiting {
        step: graph.step(place).id.clone(),
        until,
    });
    let ready = graph.ready(states);
    work.begin
        .extend(ready.into_iter().map(|place| attempt(place, 1)));
    work
}

/// When an attempt that only waits ends on its own, and by which way the run then continues;
/// `None` for attempts that do something.
pub fn end_of_wait(step: &workflow::Step, since: DateTime<Utc>) -> Option<(DateTime<Utc>, Way)> {
    match &step.action {
        Action::Delay(delay) => Some((later(since, delay.seconds), Way::Next)),
        Action::WaitForEvent(wait) => {
            let until = wait.timeout_seconds.map(|seconds| later(since, seconds));
            Some((until.unwrap_or(DateTime::<Utc>::MAX_UTC), Way::OnTimeout))
        }
        _ => None,
    }
}

fn later(since: DateTime<Utc>, seconds: f64) -> DateTime<Utc> {
    let time = Duration::try_from_secs_f64(seconds.max(0.0)).ok();
    let time = time.and_then(|time| TimeDelta::from_std(time).ok());
    time.and_then(|time| since.checked_add_signed(time))
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}
