//! Values between JSON and `MiniJinja`, and the budget that bounds them.

use std::sync::atomic::{AtomicUsize, Ordering};

use minijinja::value::{Object, Value, ValueKind};
use minijinja::{Error, ErrorKind};
use serde_json::{Map, Number, Value as Json};

/// How many bytes one rendering may work on, all operands and results together.
const BUDGET: usize = 4 * 1024 * 1024;
/// What a value costs beside its text.
const OVERHEAD: usize = 16;
/// How deep a value may nest.
const MAX_DEPTH: usize = 64;

/// What is left for a rendering. Every operation that could make something large charges for
/// what it reads, so that no chain of them can exceed the whole.
#[derive(Debug)]
pub(super) struct Budget(AtomicUsize);

impl Object for Budget {}

impl Default for Budget {
    fn default() -> Self {
        Self(AtomicUsize::new(BUDGET))
    }
}

impl Budget {
    /// Takes `bytes` from what is left.
    pub(super) fn charge(&self, bytes: usize) -> Result<(), Error> {
        let left = self.0.load(Ordering::Relaxed);
        let rest = left.checked_sub(bytes).ok_or_else(exhausted)?;
        // A rendering runs on one thread; the atomic only makes the value shareable.
        self.0.store(rest, Ordering::Relaxed);
        Ok(())
    }

    /// Charges for a value and all that is in it.
    pub(super) fn charge_value(&self, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(invalid("nested too deep"));
        }
        self.charge(OVERHEAD + value.as_str().map_or(0, str::len))?;
        match value.kind() {
            ValueKind::Seq | ValueKind::Iterable => {
                for item in value.try_iter()?.checked() {
                    self.charge_value(&item?, depth + 1)?;
                }
            }
            ValueKind::Map => {
                for key in value.try_iter()?.checked() {
                    let key = key?;
                    self.charge_value(&key, depth + 1)?;
                    self.charge_value(&value.get_item(&key)?, depth + 1)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn exhausted() -> Error {
    let mib = BUDGET / 1024 / 1024;
    Error::new(
        ErrorKind::OutOfFuel,
        format!("works on more than {mib} MiB"),
    )
}

pub(super) fn invalid(reason: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, reason.into())
}

/// JSON as `MiniJinja` sees it.
pub(super) fn from_json(json: &Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(value) => Value::from(*value),
        Json::Number(number) => from_number(number),
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => items.iter().map(from_json).collect::<Vec<Value>>().into(),
        Json::Object(fields) => {
            let fields = fields.iter();
            Value::from_pairs(fields.map(|(key, value)| (key.as_str(), from_json(value))))
        }
    }
}

fn from_number(number: &Number) -> Value {
    if let Some(integer) = number.as_i64() {
        Value::from(integer)
    } else if let Some(integer) = number.as_u64() {
        Value::from(integer)
    } else {
        Value::from(number.as_f64().unwrap_or(f64::NAN))
    }
}

/// A value as JSON; undefined ones and those without a JSON form are errors.
pub(super) fn to_json(value: &Value, budget: &Budget) -> Result<Json, Error> {
    budget.charge_value(value, 0)?;
    charged_to_json(value)
}

fn charged_to_json(value: &Value) -> Result<Json, Error> {
    Ok(match value.kind() {
        ValueKind::Undefined => return Err(Error::from(ErrorKind::UndefinedError)),
        ValueKind::None => Json::Null,
        ValueKind::Bool => Json::Bool(value.is_true()),
        ValueKind::Number => Json::Number(to_number(value)?),
        ValueKind::String => Json::String(value.as_str().unwrap_or_default().to_owned()),
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value.try_iter()?.checked();
            items
                .map(|item| charged_to_json(&item?))
                .collect::<Result<_, _>>()?
        }
        ValueKind::Map => {
            let mut fields = Map::new();
            for key in value.try_iter()?.checked() {
                let key = key?;
                let item = charged_to_json(&value.get_item(&key)?)?;
                fields.insert(key_text(&key)?, item);
            }
            Json::Object(fields)
        }
        other => return Err(invalid(format!("a value of type {other} has no JSON form"))),
    })
}

fn to_number(value: &Value) -> Result<Number, Error> {
    let number = if value.is_integer() {
        match i64::try_from(value.clone()) {
            Ok(integer) => Some(Number::from(integer)),
            Err(_) => u64::try_from(value.clone()).ok().map(Number::from),
        }
    } else {
        f64::try_from(value.clone()).ok().and_then(Number::from_f64)
    };
    number.ok_or_else(|| invalid(format!("the number {value} has no JSON form")))
}

fn key_text(key: &Value) -> Result<String, Error> {
    match key.as_str() {
        Some(text) => Ok(text.to_owned()),
        None if matches!(key.kind(), ValueKind::Number | ValueKind::Bool) => text_of(key),
        None => Err(invalid("a map's keys must be strings")),
    }
}

/// A value within text, charged for: strings as they are, everything else as JSON.
pub(super) fn to_text(value: &Value, budget: &Budget) -> Result<String, Error> {
    budget.charge_value(value, 0)?;
    text_of(value)
}

fn text_of(value: &Value) -> Result<String, Error> {
    match value.as_str() {
        Some(text) => Ok(text.to_owned()),
        None => charged_to_json(value).map(|json| json.to_string()),
    }
}
