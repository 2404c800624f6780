//! What `steps.<id>` is while that step of the workflow has not succeeded in the run: it was
//! skipped, has failed, is in progress or was not reached.
//!
//! Which way a run takes is not the author's mistake, unlike a name that nothing defines. So this
//! is no undefined value, which would be an error wherever it is used: it is null as a value, empty
//! within text and false in a condition, and what is looked up beneath its `output` is the same.

use std::fmt;
use std::sync::{Arc, LazyLock};

use minijinja::value::{Object, ObjectRepr, Value};

static STEP: LazyLock<Value> = LazyLock::new(|| Value::from_object(Absent::Step));
static OUTPUT: LazyLock<Value> = LazyLock::new(|| Value::from_object(Absent::Output));

#[derive(Debug)]
enum Absent {
    /// A step: it has an `output` and nothing else.
    Step,
    /// The output of a step, or anything beneath it.
    Output,
}

/// A step that has not succeeded.
pub(super) fn step() -> Value {
    STEP.clone()
}

/// Whether a value is a step that has not succeeded, its output, or anything beneath it.
pub(super) fn is_absent(value: &Value) -> bool {
    value.downcast_object_ref::<Absent>().is_some()
}

impl Object for Absent {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, name: &Value) -> Option<Value> {
        match **self {
            Self::Step if name.as_str() != Some("output") => None,
            Self::Step | Self::Output => Some(OUTPUT.clone()),
        }
    }

    fn is_true(self: &Arc<Self>) -> bool {
        false
    }

    /// Writes nothing. `MiniJinja` compares plain objects by what they write, so all absent values
    /// are equal.
    fn render(self: &Arc<Self>, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}
