//! What each type of step does.

mod condition;
pub(super) mod http;
mod notify;
pub(super) mod record;
mod trigger;

pub(super) use domain::run::encoded_len;
use domain::run::{Run, StepState};
use domain::template::{Meter, Scope};
use schemas::Event;
use schemas::nesting::{self, MAX_LEVELS};
use schemas::run::Way;
use schemas::workflow::Action;
use schemas::{RunId, StepId};
use serde_json::{Value, json};

use super::program::{Program, Templates};
use super::secrets::Values;

/// The largest input or data that is recorded, as JSON.
pub(super) const MAX_RECORDED: usize = 256 * 1024;

/// The state of a step's attempt once it has begun.
pub(super) enum Begun {
    /// It has already succeeded.
    Done(Box<Done>),
    /// It makes a call, and its outcome comes later.
    Call {
        /// The input to record.
        input: Value,
        /// The call.
        call: Call,
    },
    /// It waits for its time.
    Waits {
        /// The input to record.
        input: Value,
        /// The type of the event that it also waits for.
        event: Option<String>,
    },
}

impl Begun {
    /// The input to record.
    pub(super) fn input(&self) -> &Value {
        match self {
            Self::Done(done) => &done.input,
            Self::Call { input, .. } | Self::Waits { input, .. } => input,
        }
    }
}

/// The work between a step's start and its outcome.
pub(super) enum Call {
    /// A request to an address of the user's.
    Http(Box<http::Call>),
    /// A record to be written.
    Record(Box<record::Call>),
}

/// A step that succeeds as soon as it begins.
pub(super) struct Done {
    pub(super) input: Value,
    /// Its event in the run's own stream, in the same commit as its success.
    pub(super) says: Option<Event>,
    /// Which way the run continues.
    pub(super) way: Way,
    pub(super) output: Value,
}

/// The context of a step.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub(super) run: &'a RunId,
    pub(super) scope: &'a Scope,
    pub(super) secrets: &'a Values,
    /// Accounts for everything that is rendered.
    pub(super) meter: &'a Meter,
}

/// The names that templates see of a run: its program's steps with the outputs of those that have
/// succeeded.
pub(super) fn scope_of(run: &Run, program: &Program) -> Scope {
    let steps = run.steps.iter();
    let ended = steps.filter(|(_, step)| matches!(step.state, StepState::Succeeded(_)));
    let outputs = ended.map(|(id, step)| (id, &step.output));
    Scope::new(&run.id, &run.trigger_payload, program.steps(), outputs)
}

/// Begins an attempt; an error is permanent, as the same input would lead to it again.
pub(super) fn begin(
    program: &Program,
    step: &StepId,
    with: &Surroundings<'_>,
) -> Result<Begun, String> {
    let templates = program.templates(step).map_err(ToString::to_string)?;
    let mut steps = program.graph.definition().steps.iter();
    let step = steps.find(|known| known.id == *step);
    let step = step.ok_or("the workflow has no such step")?;
    match (&step.action, templates) {
        (Action::Trigger(_), _) => Ok(Begun::Done(Box::new(trigger::begin()))),
        (Action::Http(http), Templates::Http(templates)) => {
            let (input, call) = http::prepare(&step.id, http, templates, with)?;
            let call = Call::Http(Box::new(call));
            Ok(Begun::Call { input, call })
        }
        (Action::Record(record), Templates::Record(templates)) => {
            let (input, call) = record::prepare(&step.id, record, templates, with)?;
            let call = Call::Record(Box::new(call));
            Ok(Begun::Call { input, call })
        }
        (Action::Condition(_), Templates::Condition(test)) => {
            let done = condition::begin(test, with)?;
            Ok(Begun::Done(Box::new(done)))
        }
        (Action::Delay(delay), _) => Ok(Begun::Waits {
            input: json!({ "seconds": delay.seconds }),
            event: None,
        }),
        (Action::WaitForEvent(wait), _) => Ok(Begun::Waits {
            input: json!({ "event": wait.event }),
            event: Some(wait.event.clone()),
        }),
        (Action::Notify(notify), Templates::Notify(data)) => {
            let done = notify::begin(notify, data, with)?;
            Ok(Begun::Done(Box::new(done)))
        }
        (Action::Http(_) | Action::Notify(_) | Action::Condition(_) | Action::Record(_), _) => {
            Err("the step has no templates".to_owned())
        }
    }
}

/// Refuses what is too large or nested too deep to be recorded.
fn within_bounds(what: &str, value: &Value) -> Result<(), String> {
    within_size(what, value)?;
    within_levels(what, value)
}

fn within_levels(what: &str, value: &Value) -> Result<(), String> {
    if nesting::levels(value) > MAX_LEVELS {
        return Err(format!(
            "the {what} is nested more than {MAX_LEVELS} levels deep"
        ));
    }
    Ok(())
}

fn within_size(what: &str, value: &Value) -> Result<(), String> {
    if encoded_len(value) > MAX_RECORDED {
        let kib = MAX_RECORDED / 1024;
        return Err(format!("the {what} is larger than {kib} KiB"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_or_nested_too_deep_is_not_recorded() {
        let nested = |levels: usize| (1..levels).fold(json!([]), |inner, _| json!([inner]));
        assert_eq!(within_bounds("data", &nested(MAX_LEVELS)), Ok(()));
        let deep = "the data is nested more than 100 levels deep".to_owned();
        assert_eq!(within_bounds("data", &nested(MAX_LEVELS + 1)), Err(deep));
        let large = "the data is larger than 256 KiB".to_owned();
        let text = Value::from("x".repeat(MAX_RECORDED));
        assert_eq!(within_bounds("data", &text), Err(large));
    }
}
