//! The names that an expression may use, and their values within a run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use minijinja::Error;
use minijinja::value::{Enumerator, Object, Value};
use schemas::{RunId, StepId};
use serde_json::{Map, Value as Json};

use super::value::{from_json, from_map};
use super::{MASK, Meter, absent};

/// The name under which filters find the meter; no expression can name it.
pub(super) const METER: &str = "_meter";

/// The values that a run offers to its templates. Cheap to create and to clone: values are read
/// when an expression first names them, and are paid for then.
#[derive(Clone, Debug)]
pub struct Scope {
    trigger: Given,
    /// All steps of the definition.
    steps: Arc<BTreeSet<StepId>>,
    outputs: Arc<BTreeMap<String, Given>>,
    run: Option<RunId>,
    data: Given,
}

impl Scope {
    /// The scope of a run: its payload, the steps of its definition, and the outputs of those that
    /// have succeeded.
    pub fn new<'a>(
        run_id: &RunId,
        trigger: &Arc<Map<String, Json>>,
        steps: &Arc<BTreeSet<StepId>>,
        outputs: impl IntoIterator<Item = (&'a StepId, &'a Arc<Json>)>,
    ) -> Self {
        let outputs = outputs.into_iter().map(|(id, output)| {
            let output = Given::new(Source::Value(Arc::clone(output)));
            (id.as_str().to_owned(), output)
        });
        Self {
            trigger: Given::new(Source::Fields(Arc::clone(trigger))),
            steps: Arc::clone(steps),
            outputs: Arc::new(outputs.collect()),
            run: Some(run_id.clone()),
            data: Given::nothing(),
        }
    }

    /// The scope of an event alone.
    pub fn of_event(data: &Arc<Json>) -> Self {
        Self {
            trigger: Given::nothing(),
            steps: Arc::default(),
            outputs: Arc::default(),
            run: None,
            data: Given::new(Source::Value(Arc::clone(data))),
        }
    }

    /// The same scope with an event's data added.
    #[must_use]
    pub fn with_event(&self, data: &Arc<Json>) -> Self {
        Self {
            data: Given::new(Source::Value(Arc::clone(data))),
            ..self.clone()
        }
    }

    /// Opens the scope for one rendering.
    pub(super) fn open(&self, secrets: &Secrets, meter: &Meter) -> Open {
        let names = Names {
            scope: self.clone(),
            secrets: Value::from_object(secrets.clone()),
            meter: meter.clone(),
        };
        Open {
            names: Value::from_object(names),
            meter: meter.clone(),
        }
    }
}

/// A value that is read when it is first named.
#[derive(Clone, Debug)]
struct Given(Arc<Read>);

#[derive(Debug)]
struct Read {
    source: Source,
    value: OnceLock<Value>,
}

#[derive(Debug)]
enum Source {
    Nothing,
    Value(Arc<Json>),
    Fields(Arc<Map<String, Json>>),
}

impl Given {
    fn new(source: Source) -> Self {
        let value = OnceLock::new();
        Self(Arc::new(Read { source, value }))
    }

    fn nothing() -> Self {
        Self::new(Source::Nothing)
    }

    fn value(&self, meter: &Meter) -> Value {
        let Read { source, value } = &*self.0;
        if let Some(value) = value.get() {
            return value.clone();
        }
        let read: Result<Value, Error> = match source {
            Source::Nothing => Ok(Value::UNDEFINED),
            Source::Value(json) => from_json(json, meter.means()),
            Source::Fields(fields) => from_map(fields, meter.means()),
        };
        match read {
            Ok(read) => value.get_or_init(|| read).clone(),
            Err(error) => Value::from(error),
        }
    }
}

/// The values of `secrets.<NAME>`.
#[derive(Clone, Debug)]
pub enum Secrets {
    /// As [`MASK`], whatever the name: for what is recorded.
    Masked,
    /// As they are: for the wire.
    Shown(Arc<Shown>),
}

/// Secrets by name. It remembers those that were shown, and does not print them.
#[derive(Default)]
pub struct Shown {
    values: Arc<BTreeMap<String, String>>,
    names: Mutex<BTreeSet<String>>,
}

impl Shown {
    /// Shows these secrets.
    pub fn new(values: Arc<BTreeMap<String, String>>) -> Self {
        let names = Mutex::default();
        Self { values, names }
    }

    /// The names of those that were shown so far.
    pub fn names(&self) -> BTreeSet<String> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.clone()
    }

    fn show(&self, name: &str) -> Option<Value> {
        let value = self.values.get(name)?;
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(name.to_owned());
        Some(Value::from(value.as_str()))
    }
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shown({} secrets)", self.values.len())
    }
}

impl Object for Secrets {
    fn get_value(self: &Arc<Self>, name: &Value) -> Option<Value> {
        match &**self {
            Self::Masked => Some(Value::from(MASK)),
            Self::Shown(shown) => shown.show(name.as_str()?),
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::NonEnumerable
    }
}

/// A scope in use.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) names: Value,
    pub(super) meter: Meter,
}

#[derive(Debug)]
struct Names {
    scope: Scope,
    secrets: Value,
    meter: Meter,
}

impl Object for Names {
    fn get_value(self: &Arc<Self>, name: &Value) -> Option<Value> {
        let Self {
            scope,
            secrets,
            meter,
        } = &**self;
        Some(match name.as_str()? {
            "trigger" => scope.trigger.value(meter),
            "steps" => Value::from_object(Steps(Arc::clone(self))),
            "run" => {
                let run = scope.run.as_ref()?;
                Value::from_pairs([("id", Value::from(run.as_str()))])
            }
            "data" => scope.data.value(meter),
            "secrets" => secrets.clone(),
            METER => Value::from_dyn_object(Arc::clone(meter.means())),
            _ => return None,
        })
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::NonEnumerable
    }
}

/// `steps`: each id of the definition with its `output`, absent unless the step has succeeded.
#[derive(Debug)]
struct Steps(Arc<Names>);

impl Object for Steps {
    fn get_value(self: &Arc<Self>, id: &Value) -> Option<Value> {
        let Names { scope, meter, .. } = &*self.0;
        let id = id.as_str()?;
        match scope.outputs.get(id) {
            Some(output) => Some(Value::from_pairs([("output", output.value(meter))])),
            None => scope.steps.contains(&StepId::from(id)).then(absent::step),
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let ids = self.0.scope.steps.iter();
        Enumerator::Values(ids.map(|id| Value::from(id.as_str())).collect())
    }
}
