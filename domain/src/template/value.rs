//! Converts values between JSON and `MiniJinja`, and pays for walking them.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind};
use serde_json::{Map, Number, Value as Json};

use super::absent::is_absent;
use super::meter::Means;

/// The cost of a value besides its text.
pub(super) const OVERHEAD: usize = 16;
/// How deep a value may nest.
const MAX_DEPTH: usize = 64;

/// Pays for walking a value and all that is in it; returns how many units that was.
pub(super) fn walk(value: &Value, means: &Means) -> Result<usize, Error> {
    walk_at(value, means, 0)
}

fn walk_at(value: &Value, means: &Means, depth: usize) -> Result<usize, Error> {
    if depth > MAX_DEPTH {
        return Err(invalid("nested too deep"));
    }
    let mut units = shallow(value);
    means.charge(units)?;
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => {
            for item in value.try_iter()?.checked() {
                units += walk_at(&item?, means, depth + 1)?;
            }
        }
        ValueKind::Map => {
            for key in value.try_iter()?.checked() {
                let key = key?;
                units += walk_at(&key, means, depth + 1)?;
                units += walk_at(&value.get_item(&key)?, means, depth + 1)?;
            }
        }
        _ => {}
    }
    Ok(units)
}

/// The cost of a value without what is in it.
pub(super) fn shallow(value: &Value) -> usize {
    OVERHEAD + value.as_str().map_or(0, str::len)
}

pub(super) fn invalid(reason: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, reason.into())
}

/// JSON as a `MiniJinja` value, paid for.
pub(super) fn from_json(json: &Json, means: &Means) -> Result<Value, Error> {
    means.charge(OVERHEAD)?;
    Ok(match json {
        Json::Null => Value::from(()),
        Json::Bool(value) => Value::from(*value),
        Json::Number(number) => from_number(number),
        Json::String(text) => {
            means.charge(text.len())?;
            Value::from(text.as_str())
        }
        Json::Array(items) => {
            let items = items.iter().map(|item| from_json(item, means));
            Value::from(items.collect::<Result<Vec<_>, _>>()?)
        }
        Json::Object(fields) => from_map(fields, means)?,
    })
}

/// Like [`from_json`].
pub(super) fn from_map(fields: &Map<String, Json>, means: &Means) -> Result<Value, Error> {
    let mut pairs = Vec::with_capacity(fields.len());
    for (key, value) in fields {
        means.charge(2 * OVERHEAD + key.len())?;
        pairs.push((key.as_str(), from_json(value, means)?));
    }
    Ok(Value::from_pairs(pairs))
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
pub(super) fn to_json(value: &Value, means: &Means) -> Result<Json, Error> {
    walk(value, means)?;
    paid_to_json(value)
}

fn paid_to_json(value: &Value) -> Result<Json, Error> {
    Ok(match value.kind() {
        ValueKind::Undefined => return Err(Error::from(ErrorKind::UndefinedError)),
        ValueKind::None => Json::Null,
        ValueKind::Bool => Json::Bool(value.is_true()),
        ValueKind::Number => Json::Number(to_number(value)?),
        ValueKind::String => Json::String(value.as_str().unwrap_or_default().to_owned()),
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value.try_iter()?.checked();
            items
                .map(|item| paid_to_json(&item?))
                .collect::<Result<_, _>>()?
        }
        ValueKind::Map => {
            let mut fields = Map::new();
            for key in value.try_iter()?.checked() {
                let key = key?;
                let item = paid_to_json(&value.get_item(&key)?)?;
                fields.insert(key_text(&key)?, item);
            }
            Json::Object(fields)
        }
        ValueKind::Plain if is_absent(value) => Json::Null,
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
        None if matches!(key.kind(), ValueKind::Number | ValueKind::Bool) => paid_to_text(key),
        None => Err(invalid("a map's keys must be strings")),
    }
}

/// A value within text, paid for: strings as they are, nothing for an absent one, everything else
/// as JSON.
pub(super) fn to_text(value: &Value, means: &Means) -> Result<String, Error> {
    walk(value, means)?;
    paid_to_text(value)
}

fn paid_to_text(value: &Value) -> Result<String, Error> {
    match value.as_str() {
        Some(text) => Ok(text.to_owned()),
        None if is_absent(value) => Ok(String::new()),
        None => paid_to_json(value).map(|json| json.to_string()),
    }
}
