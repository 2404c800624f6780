//! The environment of expressions: filters and tests that are safe to offer, and the guards that
//! [`super::guard`] puts around operands.

use std::sync::LazyLock;

use minijinja::value::{Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, UndefinedBehavior, filters, tests};

use super::scope::BUDGET;
use super::value::{Budget, invalid, to_text};

/// Guards; no expression can name them.
pub(super) const CHARGE: &str = "_charge";
pub(super) const SUMMAND: &str = "_summand";
pub(super) const NUMBER: &str = "_number";
pub(super) const TEXT: &str = "_text";

/// Instructions one expression may take.
const FUEL: u64 = 20_000;
/// How many pieces a text may be cut into.
const MAX_PIECES: usize = 10_000;

macro_rules! environment {
    (filters: $($filter:literal => $filter_fn:expr),+; tests: $($test:literal => $test_fn:expr),+ $(;)?) => {
        /// Filters that an expression may use.
        pub(super) const FILTERS: &[&str] = &[$($filter),+];
        /// Tests that an expression may use.
        pub(super) const TESTS: &[&str] = &[$($test),+];

        pub(super) static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
            let mut environment = Environment::empty();
            environment.set_undefined_behavior(UndefinedBehavior::Strict);
            environment.set_fuel(Some(FUEL));
            $(environment.add_filter($filter, $filter_fn);)+
            $(environment.add_test($test, $test_fn);)+
            environment.add_filter(CHARGE, charge);
            environment.add_filter(SUMMAND, summand);
            environment.add_filter(NUMBER, number);
            environment.add_filter(TEXT, text);
            environment
        });
    };
}

environment! {
    filters:
        "abs" => filters::abs,
        "bool" => filters::bool,
        "capitalize" => filters::capitalize,
        "count" => filters::length,
        "d" => filters::default,
        "default" => filters::default,
        "dictsort" => filters::dictsort,
        "first" => filters::first,
        "float" => filters::float,
        "int" => filters::int,
        "items" => filters::items,
        "join" => join,
        "last" => filters::last,
        "length" => filters::length,
        "lines" => lines,
        "list" => list,
        "lower" => filters::lower,
        "map" => filters::map,
        "max" => filters::max,
        "min" => filters::min,
        "reject" => filters::reject,
        "rejectattr" => filters::rejectattr,
        "replace" => replace,
        "reverse" => filters::reverse,
        "round" => filters::round,
        "select" => filters::select,
        "selectattr" => filters::selectattr,
        "sort" => filters::sort,
        "split" => split,
        "string" => text,
        "sum" => filters::sum,
        "title" => filters::title,
        "tojson" => to_json,
        "trim" => filters::trim,
        "unique" => filters::unique,
        "upper" => filters::upper,
        "urlencode" => filters::urlencode;
    tests:
        "boolean" => tests::is_boolean,
        "defined" => tests::is_defined,
        "divisibleby" => tests::is_divisibleby,
        "endingwith" => tests::is_endingwith,
        "eq" => tests::is_eq,
        "equalto" => tests::is_eq,
        "even" => tests::is_even,
        "false" => tests::is_false,
        "float" => tests::is_float,
        "ge" => tests::is_ge,
        "greaterthan" => tests::is_gt,
        "gt" => tests::is_gt,
        "in" => tests::is_in,
        "integer" => tests::is_integer,
        "iterable" => tests::is_iterable,
        "le" => tests::is_le,
        "lessthan" => tests::is_lt,
        "lower" => tests::is_lower,
        "lt" => tests::is_lt,
        "mapping" => tests::is_mapping,
        "ne" => tests::is_ne,
        "none" => tests::is_none,
        "number" => tests::is_number,
        "odd" => tests::is_odd,
        "sequence" => tests::is_sequence,
        "startingwith" => tests::is_startingwith,
        "string" => tests::is_string,
        "true" => tests::is_true,
        "undefined" => tests::is_undefined,
        "upper" => tests::is_upper;
}

fn with_budget<T>(
    state: &State,
    run: impl FnOnce(&Budget) -> Result<T, Error>,
) -> Result<T, Error> {
    let holder = state.lookup(BUDGET);
    let budget = holder.as_ref().and_then(Value::downcast_object_ref);
    run(budget.ok_or_else(|| invalid("no budget"))?)
}

/// Charges for a filter's input, which may be undefined: `default` is there for that.
fn charge(state: &State, value: &Value) -> Result<Value, Error> {
    with_budget(state, |budget| budget.charge_value(value, 0))?;
    Ok(value.clone())
}

/// An operand of `+`.
fn summand(state: &State, value: &Value) -> Result<Value, Error> {
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    charge(state, value)
}

/// An operand of `*`: `MiniJinja` would also repeat texts and lists, without end.
fn number(value: &Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Number | ValueKind::Bool => Ok(value.clone()),
        ValueKind::Undefined => Err(Error::from(ErrorKind::UndefinedError)),
        other => Err(invalid(format!(
            "only numbers can be multiplied, not a {other}"
        ))),
    }
}

/// An operand of `~`, as text.
fn text(state: &State, value: &Value) -> Result<String, Error> {
    with_budget(state, |budget| to_text(value, budget))
}

fn to_json(state: &State, value: &Value) -> Result<String, Error> {
    with_budget(state, |budget| super::value::to_json(value, budget)).map(|json| json.to_string())
}

fn replace(state: &State, value: &str, from: &str, to: &str) -> Result<String, Error> {
    if from.is_empty() {
        return Err(invalid("cannot replace an empty text"));
    }
    let found = value.matches(from).count();
    with_budget(state, |budget| {
        budget.charge(found.saturating_mul(to.len()))
    })?;
    Ok(value.replace(from, to))
}

fn join(state: &State, value: &Value, between: Option<&str>) -> Result<String, Error> {
    with_budget(state, |budget| {
        let mut joined = String::new();
        for (nth, item) in value.try_iter()?.checked().enumerate() {
            if let (Some(between), 1..) = (between, nth) {
                budget.charge(between.len())?;
                joined.push_str(between);
            }
            joined.push_str(&to_text(&item?, budget)?);
        }
        Ok(joined)
    })
}

fn split(value: &str, separator: Option<&str>) -> Result<Value, Error> {
    match separator {
        Some("") => Err(invalid("cannot split at an empty text")),
        Some(separator) => pieces(value.split(separator)),
        None => pieces(value.split_whitespace()),
    }
}

fn lines(value: &str) -> Result<Value, Error> {
    pieces(value.lines())
}

fn pieces<'a>(pieces: impl Iterator<Item = &'a str>) -> Result<Value, Error> {
    let pieces: Vec<Value> = pieces.take(MAX_PIECES + 1).map(Value::from).collect();
    if pieces.len() > MAX_PIECES {
        return Err(invalid(format!("more than {MAX_PIECES} pieces")));
    }
    Ok(Value::from(pieces))
}

/// A list; a text is not taken apart into its characters.
fn list(value: &Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {
            let items = value.try_iter()?.checked();
            Ok(Value::from(items.collect::<Result<Vec<_>, _>>()?))
        }
        ValueKind::Undefined => Err(Error::from(ErrorKind::UndefinedError)),
        other => Err(invalid(format!("a {other} is not a list"))),
    }
}
