//! What filters and tests cost, paid before they do anything.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind};

use super::super::meter::Means;
use super::super::value::{OVERHEAD, shallow, walk};

/// The cost of the call alone: its arguments are collected and checked.
const CALL: usize = 4 * OVERHEAD;
/// A character of a text that is split.
const CHARACTER: usize = 4;
/// Digits that may have to be written out in order to round a number.
const DIGITS: usize = 2_048;

/// A bound on what a function does with its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) enum Price {
    /// The same for any arguments, or the function itself pays.
    Call,
    /// As much as its input's text is long; lists are not walked.
    Text,
    /// In proportion to how many items or characters its input has, whatever is in them.
    Length,
    /// In proportion to all arguments and all that is in them.
    Input,
    /// As before, and for each item of its input at most as much as all other arguments cost.
    /// What is called for each item pays separately.
    Items,
    /// As before, and each item is compared with logarithmically many others of its list.
    Sorting,
    /// The second argument is searched for the first.
    Search,
    /// Writes a number out.
    Digits,
}

impl Price {
    pub(super) fn pay(self, arguments: &[Value], means: &Means) -> Result<(), Error> {
        means.charge(CALL)?;
        let Some((input, others)) = arguments.split_first() else {
            return Ok(());
        };
        match self {
            Self::Call => Ok(()),
            Self::Text => means.charge(shallow(input)),
            Self::Length => {
                let each = input.as_str().map_or(OVERHEAD, |_| CHARACTER);
                means.charge(OVERHEAD + count(input).saturating_mul(each))?;
                walk_all(others, means).map(drop)
            }
            Self::Digits => means.charge(DIGITS),
            Self::Input => {
                walk(input, means)?;
                walk_all(others, means).map(drop)
            }
            Self::Items => {
                walk(input, means)?;
                items(input, others, means).map(drop)
            }
            Self::Sorting => {
                let units = walk(input, means)?;
                let items = items(input, others, means)?;
                let comparisons = items.checked_ilog2().map_or(0, |log| log as usize + 1);
                means.charge(units.saturating_mul(comparisons))
            }
            Self::Search => {
                let units = walk(input, means)?;
                walk_all(others, means)?;
                // A list's items are compared with everything in a list or map searched for.
                match input.kind() {
                    ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {
                        let all = others.first().map_or(0, count);
                        means.charge(all.saturating_mul(units))
                    }
                    _ => Ok(()),
                }
            }
        }
    }
}

/// Pays for iterating over a value's items, with the other arguments at hand for each.
fn items(input: &Value, others: &[Value], means: &Means) -> Result<usize, Error> {
    let units = walk_all(others, means)?;
    let items = count(input);
    means.charge(items.saturating_mul(OVERHEAD))?;
    // Refused before the first item rather than in the middle.
    means.affords(items.saturating_mul(units))?;
    Ok(items)
}

fn walk_all(values: &[Value], means: &Means) -> Result<usize, Error> {
    values
        .iter()
        .try_fold(0_usize, |sum, value| Ok(sum + walk(value, means)?))
}

/// How many items a value has; for a text, at least as many as it has characters.
fn count(value: &Value) -> usize {
    value
        .as_str()
        .map_or_else(|| value.len().unwrap_or_default(), str::len)
}

/// A complete result: a lazy one would be computed again wherever it is used.
pub(super) fn hold(value: Value, means: &Means) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Invalid => Err(Error::new(ErrorKind::InvalidOperation, value.to_string())),
        ValueKind::Iterable => {
            let mut items = Vec::new();
            for item in value.try_iter()?.checked() {
                means.charge(OVERHEAD)?;
                items.push(item?);
            }
            Ok(Value::from(items))
        }
        ValueKind::Seq | ValueKind::Map => {
            means.charge(value.len().unwrap_or_default())?;
            Ok(value)
        }
        _ => {
            means.charge(shallow(&value))?;
            Ok(value)
        }
    }
}
