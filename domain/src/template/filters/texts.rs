//! Filters over texts.

use std::borrow::Cow;

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, State};

use super::super::address;
use super::super::value::{self, invalid};
use super::with_means;

/// How many pieces a text may be split into.
const MAX_PIECES: usize = 10_000;

/// An operand of `~`, as text.
pub(super) fn text(state: &State<'_, '_>, value: &Value) -> Result<String, Error> {
    with_means(state, |means| value::to_text(value, means))
}

pub(super) fn to_json(state: &State<'_, '_>, value: &Value) -> Result<String, Error> {
    with_means(state, |means| value::to_json(value, means)).map(|json| json.to_string())
}

pub(super) fn replace(
    state: &State<'_, '_>,
    value: &str,
    from: &str,
    to: &str,
) -> Result<String, Error> {
    if from.is_empty() {
        return Err(invalid("cannot replace an empty text"));
    }
    let found = value.matches(from).count();
    with_means(state, |means| means.charge(found.saturating_mul(to.len())))?;
    Ok(value.replace(from, to))
}

pub(super) fn join(
    state: &State<'_, '_>,
    value: &Value,
    between: Option<&str>,
) -> Result<String, Error> {
    with_means(state, |means| {
        let mut joined = String::new();
        for (nth, item) in value.try_iter()?.checked().enumerate() {
            if let (Some(between), 1..) = (between, nth) {
                means.charge(between.len())?;
                joined.push_str(between);
            }
            joined.push_str(&value::to_text(&item?, means)?);
        }
        Ok(joined)
    })
}

pub(super) fn split(
    state: &State<'_, '_>,
    value: &str,
    separator: Option<&str>,
) -> Result<Value, Error> {
    match separator {
        Some("") => Err(invalid("cannot split at an empty text")),
        Some(separator) => pieces(state, value.split(separator)),
        None => pieces(state, value.split_whitespace()),
    }
}

pub(super) fn lines(state: &State<'_, '_>, value: &str) -> Result<Value, Error> {
    pieces(state, value.lines())
}

fn pieces<'a>(
    state: &State<'_, '_>,
    pieces: impl Iterator<Item = &'a str>,
) -> Result<Value, Error> {
    with_means(state, |means| {
        let mut found: Vec<Value> = Vec::new();
        for piece in pieces {
            if found.len() == MAX_PIECES {
                return Err(invalid(format!("more than {MAX_PIECES} pieces")));
            }
            means.charge(value::OVERHEAD)?;
            found.push(Value::from(piece));
        }
        Ok(Value::from(found))
    })
}

/// Trims white space, or the given characters, at both ends.
#[expect(
    clippy::needless_pass_by_value,
    reason = "what is no text is made one, and then owned"
)]
pub(super) fn trim(value: Cow<'_, str>, characters: Option<Cow<'_, str>>) -> String {
    let Some(characters) = characters else {
        return value.trim().to_owned();
    };
    // Looked up rather than tried one by one for each character of the text.
    let mut characters: Vec<char> = characters.chars().collect();
    characters.sort_unstable();
    let is_trimmed = |character| characters.binary_search(&character).is_ok();
    value.trim_matches(is_trimmed).to_owned()
}

/// The host of an address, with its port.
pub(super) fn authority(value: &Value) -> Result<String, Error> {
    address::authority(&scalar(value)?).map_err(invalid)
}

/// The scheme of an address.
pub(super) fn scheme(value: &Value) -> Result<String, Error> {
    address::scheme(&scalar(value)?).map_err(invalid)
}

/// A value as one component of an address's path or query.
pub(super) fn component(state: &State<'_, '_>, value: &Value) -> Result<String, Error> {
    text(state, value).map(|text| address::component(&text))
}

fn scalar(value: &Value) -> Result<String, Error> {
    match value.kind() {
        ValueKind::String | ValueKind::Number => Ok(value.to_string()),
        ValueKind::Undefined => Err(Error::from(minijinja::ErrorKind::UndefinedError)),
        other => Err(invalid(format!("a {other} cannot be inserted into a URL"))),
    }
}
