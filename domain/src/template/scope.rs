//! The names that an expression may use, and their values within a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, Value};
use schemas::{RunId, StepId};
use serde_json::{Map, Value as Json};

use super::value::from_json;
use super::{Budget, MASK};

/// The name under which filters find the budget; no expression can name it.
pub(super) const BUDGET: &str = "_budget";

/// What a run has to offer to its templates.
#[derive(Clone, Debug)]
pub struct Scope {
    trigger: Value,
    steps: Value,
    run: Value,
    data: Value,
}

impl Scope {
    /// The scope of a run: its payload and the outputs of the steps that have ended.
    pub fn new<'a>(
        run_id: &RunId,
        trigger: &Map<String, Json>,
        outputs: impl IntoIterator<Item = (&'a StepId, &'a Json)>,
    ) -> Self {
        let steps = outputs.into_iter().map(|(id, output)| {
            let step = Value::from_pairs([("output", from_json(output))]);
            (id.as_str().to_owned(), step)
        });
        let trigger = trigger
            .iter()
            .map(|(key, value)| (key.as_str(), from_json(value)));
        Self {
            trigger: Value::from_pairs(trigger),
            steps: Value::from_pairs(steps),
            run: Value::from_pairs([("id", Value::from(run_id.as_str()))]),
            data: Value::UNDEFINED,
        }
    }

    /// The scope of an event alone.
    pub fn of_event(data: &Json) -> Self {
        Self {
            trigger: Value::UNDEFINED,
            steps: Value::UNDEFINED,
            run: Value::UNDEFINED,
            data: from_json(data),
        }
    }

    /// The same with an event's data beside it.
    #[must_use]
    pub fn with_event(&self, data: &Json) -> Self {
        Self {
            data: from_json(data),
            ..self.clone()
        }
    }

    /// Opens the scope for one rendering, with a fresh budget.
    pub(super) fn open(&self, secrets: Secrets<'_>) -> Open {
        let budget = Arc::new(Budget::default());
        let names = Names {
            trigger: self.trigger.clone(),
            steps: self.steps.clone(),
            run: self.run.clone(),
            data: self.data.clone(),
            secrets: secrets.value(),
            budget: Value::from_dyn_object(Arc::clone(&budget)),
        };
        Open {
            names: Value::from_object(names),
            budget,
        }
    }
}

/// How `secrets.<NAME>` reads.
#[derive(Clone, Copy, Debug)]
pub enum Secrets<'a> {
    /// As [`MASK`], whatever the name: for what is recorded.
    Masked,
    /// As they are: for the wire.
    Shown(&'a BTreeMap<String, String>),
}

impl Secrets<'_> {
    fn value(self) -> Value {
        match self {
            Self::Masked => Value::from_object(Masked),
            Self::Shown(values) => {
                let values = values.iter();
                Value::from_pairs(values.map(|(name, value)| (name.as_str(), value.as_str())))
            }
        }
    }
}

#[derive(Debug)]
struct Masked;

impl Object for Masked {
    fn get_value(self: &Arc<Self>, _name: &Value) -> Option<Value> {
        Some(Value::from(MASK))
    }
}

/// A scope in use.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) names: Value,
    pub(super) budget: Arc<Budget>,
}

#[derive(Debug)]
struct Names {
    trigger: Value,
    steps: Value,
    run: Value,
    data: Value,
    secrets: Value,
    budget: Value,
}

impl Object for Names {
    fn get_value(self: &Arc<Self>, name: &Value) -> Option<Value> {
        Some(match name.as_str()? {
            "trigger" => self.trigger.clone(),
            "steps" => self.steps.clone(),
            "run" => self.run.clone(),
            "data" => self.data.clone(),
            "secrets" => self.secrets.clone(),
            BUDGET => self.budget.clone(),
            _ => return None,
        })
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::NonEnumerable
    }
}
