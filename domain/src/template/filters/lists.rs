//! Filters over lists.

use std::borrow::Cow;
use std::cmp::Ordering;

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind, State, filters};

use super::super::value::invalid;

/// A list; a text is not split into its characters.
pub(super) fn list(value: &Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {
            let items = value.try_iter()?.checked();
            Ok(Value::from(items.collect::<Result<Vec<_>, _>>()?))
        }
        ValueKind::Undefined => Err(Error::from(ErrorKind::UndefinedError)),
        other => Err(invalid(format!("a {other} is not a list"))),
    }
}

/// Numbers only: texts and lists would be copied again for each that is added.
pub(super) fn sum(
    state: &State<'_, '_>,
    values: Value,
    attribute: Option<&str>,
    start: Option<Value>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let named = kwargs.peek::<Option<Value>>("start")?;
    let begins = start.as_ref().or(named.as_ref());
    if begins.is_some_and(|start| !start.is_number()) {
        return Err(invalid("sum needs numbers; use join for texts"));
    }
    filters::sum(state, values, attribute, start, kwargs)
}

/// A part of a list or text, from `start` up to before `stop`, as in Python.
pub(super) fn slice(
    value: &Value,
    start: Option<i64>,
    stop: Option<i64>,
    step: Option<i64>,
) -> Result<Value, Error> {
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(invalid("cannot slice by step size of 0"));
    }
    match value.kind() {
        ValueKind::String => {
            let characters: Vec<char> = value.as_str().unwrap_or_default().chars().collect();
            let places = places(characters.len(), start, stop, step);
            Ok(Value::from(
                places.map(|at| characters[at]).collect::<String>(),
            ))
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value.try_iter()?.checked();
            let items = items.collect::<Result<Vec<_>, _>>()?;
            let places = places(items.len(), start, stop, step);
            Ok(Value::from(
                places.map(|at| items[at].clone()).collect::<Vec<_>>(),
            ))
        }
        ValueKind::None => Ok(Value::from(Vec::<Value>::new())),
        ValueKind::Undefined => Err(Error::from(ErrorKind::UndefinedError)),
        other => Err(invalid(format!("a {other} cannot be sliced"))),
    }
}

/// The indexes that a slice names, all below `length`.
fn places(
    length: usize,
    start: Option<i64>,
    stop: Option<i64>,
    step: i64,
) -> impl Iterator<Item = usize> {
    let end = i64::try_from(length).unwrap_or(i64::MAX);
    // The limits for a bound that counts from the end or goes beyond it.
    let (lowest, highest) = if step > 0 { (0, end) } else { (-1, end - 1) };
    let place = |bound: i64| {
        let from_begin = if bound < 0 {
            bound.saturating_add(end)
        } else {
            bound
        };
        from_begin.clamp(lowest, highest)
    };
    let (first, last) = if step > 0 { (0, end) } else { (end - 1, -1) };
    let stop = stop.map_or(last, place);
    let next = move |at: &i64| at.checked_add(step);
    std::iter::successors(Some(start.map_or(first, place)), next)
        .take_while(move |at| if step > 0 { *at < stop } else { *at > stop })
        .filter_map(|at| usize::try_from(at).ok())
}

/// Sorts; items without the attribute come first. Case counts only if requested.
#[expect(
    clippy::needless_pass_by_value,
    reason = "arguments by name come by value only"
)]
pub(super) fn sort(value: &Value, kwargs: Kwargs) -> Result<Value, Error> {
    let case_sensitive = kwargs.get::<Option<bool>>("case_sensitive")?;
    let reverse = kwargs.get::<Option<bool>>("reverse")?.unwrap_or(false);
    let attributes = kwargs.get::<Option<Cow<'_, str>>>("attribute")?;
    kwargs.assert_all_used()?;
    let paths: Vec<&str> = attributes.iter().flat_map(|all| all.split(',')).collect();
    let case_sensitive = case_sensitive.unwrap_or(false);
    let key = |item: &Value| {
        if paths.is_empty() {
            return vec![folded(item.clone(), case_sensitive)];
        }
        let parts = paths.iter().map(|path| attribute(item, path.trim()));
        parts.map(|part| folded(part, case_sensitive)).collect()
    };
    let mut keyed = Vec::with_capacity(value.len().unwrap_or_default());
    for item in value.try_iter()?.checked() {
        let item = item?;
        keyed.push((key(&item), item));
    }
    keyed.sort_by(|(a, _), (b, _)| {
        let order: Ordering = a.cmp(b);
        if reverse { order.reverse() } else { order }
    });
    let items = keyed.into_iter().map(|(_, item)| item);
    Ok(Value::from(items.collect::<Vec<_>>()))
}

fn folded(value: Value, case_sensitive: bool) -> Value {
    match value.as_str() {
        Some(text) if !case_sensitive => Value::from(text.to_lowercase()),
        _ => value,
    }
}

/// The value at a dotted path, undefined if it leads nowhere.
fn attribute(item: &Value, path: &str) -> Value {
    let found = path
        .split('.')
        .try_fold(item.clone(), |value, part| match part.parse::<usize>() {
            Ok(nth) => value.get_item_by_index(nth),
            Err(_) => value.get_attr(part),
        });
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::places;

    #[test]
    fn a_slice_is_that_of_python() {
        let of = |start, stop, step| places(5, start, stop, step).collect::<Vec<_>>();
        assert_eq!(of(None, None, 1), [0, 1, 2, 3, 4]);
        assert_eq!(of(Some(1), Some(-1), 1), [1, 2, 3]);
        assert_eq!(of(Some(-2), None, 1), [3, 4]);
        assert_eq!(of(None, None, -1), [4, 3, 2, 1, 0]);
        assert_eq!(of(None, Some(0), -2), [4, 2]);
        assert_eq!(of(Some(i64::MIN), Some(i64::MAX), 2), [0, 2, 4]);
        assert_eq!(of(Some(9), Some(i64::MIN), i64::MIN), [4]);
        assert!(of(Some(3), Some(1), 1).is_empty());
        assert!(places(0, None, None, -1).next().is_none());
    }
}
