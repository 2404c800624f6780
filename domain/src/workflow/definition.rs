//! Reads a workflow's definition from JSON; every error names its place.

use schemas::WorkflowId;
use schemas::workflow::{Definition, Status};
use serde_json::Value;

use super::{graph, step};
use crate::object::{Errors, Object};
use crate::{FieldError, Invalid, text};

/// How long a run may take if the definition does not specify it: a day.
pub const DEFAULT_TIMEOUT_SECONDS: u64 = 86_400;
/// A year: a longer run has been forgotten rather than waiting.
const MAX_TIMEOUT_SECONDS: u64 = 31_536_000;
const MAX_NAME: usize = 200;
const MAX_STEPS: usize = 500;
/// Expressions in braces of all steps together: compiled, each takes thousands of bytes, and no
/// definition may exhaust the memory that all share.
const MAX_EXPRESSIONS: usize = 1_000;

const STATUSES: &[(&str, Status)] = &[
    ("DRAFT", Status::Draft),
    ("ACTIVE", Status::Active),
    ("PAUSED", Status::Paused),
    ("ARCHIVED", Status::Archived),
];

/// Parses a workflow's id from a path.
pub fn parse_id(given: &str) -> Result<WorkflowId, FieldError> {
    text::id("workflowId", given)?;
    Ok(WorkflowId::new(given))
}

/// Reads the definition of the workflow `id`; an id within it must be the same.
pub fn parse(id: &WorkflowId, value: Value) -> Result<Definition, Invalid> {
    let errors = Errors::default();
    let definition = read(id, value, &errors);
    errors.settle(definition)
}

fn read(id: &WorkflowId, value: Value, errors: &Errors) -> Option<Definition> {
    let mut object = Object::open("", value, errors)?;
    if object
        .string("workflowId")
        .is_some_and(|own| own != id.as_str())
    {
        object.error("workflowId", "must equal the id in the path");
    }
    let name = object.required_name("name", MAX_NAME);
    let status = object.required_word("status", STATUSES);
    let timeout_seconds = object.integer("timeoutSeconds", 1..=MAX_TIMEOUT_SECONDS);
    if object.take_absent("steps") {
        object.error("steps", "is required (it may be empty)");
    }
    let steps = object.array("steps", MAX_STEPS).map(|values| {
        let expressions: usize = values.iter().map(expressions).sum();
        if expressions > MAX_EXPRESSIONS {
            let reason = format!(
                "must have at most {MAX_EXPRESSIONS} expressions in {{{{ }}}} altogether, and has \
                 {expressions}"
            );
            object.error("steps", reason);
            return Vec::new();
        }
        let wrong_before = errors.count();
        let steps: Vec<_> = values
            .into_iter()
            .enumerate()
            .filter_map(|(nth, value)| step::read(format!("steps[{nth}]"), value, errors))
            .collect();
        // Only valid steps can be checked together: a broken one would look like a missing one.
        if errors.count() == wrong_before {
            graph::check(&steps, errors);
        }
        steps
    });
    object.finish();
    Some(Definition {
        name: name?,
        status: status?,
        timeout_seconds: timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS),
        steps: steps?,
    })
}

/// How many expressions in braces there are within a value.
fn expressions(value: &Value) -> usize {
    match value {
        Value::String(text) => text.matches("{{").count(),
        Value::Array(items) => items.iter().map(expressions).sum(),
        Value::Object(fields) => fields.values().map(expressions).sum(),
        _ => 0,
    }
}
