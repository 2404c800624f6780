//! Filters that operands pass through before an operator.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, State, tests};

use super::super::value::invalid;

/// An operand that has been paid for. It may be undefined: the operator reports that.
pub(super) fn same(value: &Value) -> Value {
    value.clone()
}

/// An operand of `+`.
pub(super) fn summand(value: &Value) -> Result<Value, Error> {
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    Ok(value.clone())
}

/// An operand of `*`: `MiniJinja` would also repeat texts and lists, without end.
pub(super) fn number(value: &Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Number | ValueKind::Bool => Ok(value.clone()),
        ValueKind::Undefined => Err(Error::from(ErrorKind::UndefinedError)),
        other => Err(invalid(format!(
            "only numbers can be multiplied, not a {other}"
        ))),
    }
}

/// `item in all`.
pub(super) fn within(state: &State<'_, '_>, item: &Value, all: &Value) -> Result<bool, Error> {
    match all.kind() {
        ValueKind::String | ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {
            tests::is_in(state, item, all)
        }
        ValueKind::Undefined => Err(Error::from(ErrorKind::UndefinedError)),
        other => Err(invalid(format!(
            "`in` needs a list, a map or a text on its right, not a {other}"
        ))),
    }
}

/// Nothing is divisible by zero, instead of a division that fails.
pub(super) fn is_divisible_by(value: &Value, by: &Value) -> bool {
    if let (Ok(value), Ok(by)) = (i128::try_from(value.clone()), i128::try_from(by.clone())) {
        return value.checked_rem(by) == Some(0);
    }
    let pair = (f64::try_from(value.clone()), f64::try_from(by.clone()));
    matches!(pair, (Ok(value), Ok(by)) if value % by == 0.0)
}
