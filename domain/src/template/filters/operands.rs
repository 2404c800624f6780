//! Filters that operands pass through before an operator, and those that take absent values.

use minijinja::value::{Rest, Value, ValueKind};
use minijinja::{Error, ErrorKind, State, filters, tests};

use super::super::absent::is_absent;
use super::super::value::invalid;

/// An operand that has been paid for. It may be undefined: the operator reports that.
pub(super) fn same(value: &Value) -> Value {
    value.clone()
}

/// `default`, which replaces what is absent too.
pub(super) fn default(
    state: &State<'_, '_>,
    value: &Value,
    others: Rest<Value>,
) -> Result<Value, Error> {
    let undefined = Value::UNDEFINED;
    let value = if is_absent(value) { &undefined } else { value };
    filters::default(state, value, others)
}

pub(super) fn is_undefined(value: &Value) -> bool {
    value.is_undefined() || is_absent(value)
}

pub(super) fn is_defined(value: &Value) -> bool {
    !is_undefined(value)
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
