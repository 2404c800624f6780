//! The environment of expressions: filters and tests that are safe to offer, each with its price,
//! and the guards that [`super::guard`] puts around operands.
//!
//! A filter or test can only be registered together with a price, and is called only once that is
//! paid. What has no price that bounds its cost is not offered.

mod lists;
mod operands;
mod price;
mod texts;

use std::sync::LazyLock;

use minijinja::value::{FunctionArgs, FunctionResult, Rest, Value, ValueOrKwargs};
use minijinja::{
    Environment, Error, ErrorKind, State, UndefinedBehavior, filters, functions::Function, tests,
};

use super::absent::is_absent;
use super::meter::Means;
use super::scope::METER;
use super::value::invalid;
use price::Price;

/// Guards; no expression can name them.
pub(super) const PAID: &str = "_paid";
pub(super) const ORDERED: &str = "_ordered";
pub(super) const SUMMAND: &str = "_summand";
pub(super) const NUMBER: &str = "_number";
pub(super) const TEXT: &str = "_text";
pub(super) const HELD: &str = "_held";
pub(super) const WITHIN: &str = "_within";
pub(super) const SLICED: &str = "_sliced";
pub(super) const INDEXED: &str = "_indexed";
pub(super) const AUTHORITY: &str = "_authority";
pub(super) const SCHEME: &str = "_scheme";
pub(super) const COMPONENT: &str = "_component";

/// What takes an absent value. All other filters, tests and guards refuse one like an undefined
/// value: as an object of ours it would be ordered, searched and written in ways nobody means.
const TAKE_ABSENT: &[&str] = &[
    "bool",
    "boolean",
    "d",
    "default",
    "defined",
    "eq",
    "equalto",
    "false",
    "integer",
    "iterable",
    "mapping",
    "ne",
    "none",
    "number",
    "sequence",
    "string",
    "tojson",
    "true",
    "undefined",
    PAID,
    TEXT,
    INDEXED,
];

/// Instructions one expression may take.
const FUEL: u64 = 20_000;

macro_rules! environment {
    (
        filters: $($filter:literal: $filter_price:ident => $filter_fn:expr),+;
        tests: $($test:literal: $test_price:ident => $test_fn:expr),+;
        guards: $($guard:ident: $guard_price:ident => $guard_fn:expr),+ $(;)?
    ) => {
        /// Filters that an expression may use.
        pub(super) const FILTERS: &[&str] = &[$($filter),+];
        /// Tests that an expression may use.
        pub(super) const TESTS: &[&str] = &[$($test),+];

        pub(super) static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
            let mut environment = Environment::empty();
            environment.set_undefined_behavior(UndefinedBehavior::Strict);
            environment.set_fuel(Some(FUEL));
            $(environment.add_filter($filter, priced($filter, Price::$filter_price, $filter_fn));)+
            $(environment.add_test($test, priced($test, Price::$test_price, $test_fn));)+
            $(environment.add_filter($guard, priced($guard, Price::$guard_price, $guard_fn));)+
            environment
        });
    };
}

environment! {
    filters:
        "abs": Call => filters::abs,
        "bool": Call => filters::bool,
        "capitalize": Input => filters::capitalize,
        "count": Text => filters::length,
        "d": Call => operands::default,
        "default": Call => operands::default,
        "dictsort": Sorting => filters::dictsort,
        "first": Text => filters::first,
        "float": Text => filters::float,
        "int": Text => filters::int,
        "items": Items => filters::items,
        "join": Items => texts::join,
        "last": Length => filters::last,
        "length": Text => filters::length,
        "lines": Input => texts::lines,
        "list": Length => lists::list,
        "lower": Input => filters::lower,
        "map": Items => filters::map,
        "max": Items => filters::max,
        "min": Items => filters::min,
        "reject": Items => filters::reject,
        "rejectattr": Items => filters::rejectattr,
        "replace": Input => texts::replace,
        "reverse": Length => filters::reverse,
        "round": Digits => filters::round,
        "select": Items => filters::select,
        "selectattr": Items => filters::selectattr,
        "sort": Sorting => lists::sort,
        "split": Input => texts::split,
        "string": Call => texts::text,
        "sum": Items => lists::sum,
        "title": Input => filters::title,
        "tojson": Call => texts::to_json,
        "trim": Input => texts::trim,
        "unique": Sorting => filters::unique,
        "upper": Input => filters::upper,
        "urlencode": Input => filters::urlencode;
    tests:
        "boolean": Call => tests::is_boolean,
        "defined": Call => operands::is_defined,
        "divisibleby": Call => operands::is_divisible_by,
        "endingwith": Input => tests::is_endingwith,
        "eq": Input => tests::is_eq,
        "equalto": Input => tests::is_eq,
        "even": Call => tests::is_even,
        "false": Call => tests::is_false,
        "float": Call => tests::is_float,
        "ge": Input => tests::is_ge,
        "greaterthan": Input => tests::is_gt,
        "gt": Input => tests::is_gt,
        "in": Search => tests::is_in,
        "integer": Call => tests::is_integer,
        "iterable": Call => tests::is_iterable,
        "le": Input => tests::is_le,
        "lessthan": Input => tests::is_lt,
        "lower": Input => tests::is_lower,
        "lt": Input => tests::is_lt,
        "mapping": Call => tests::is_mapping,
        "ne": Input => tests::is_ne,
        "none": Call => tests::is_none,
        "number": Call => tests::is_number,
        "odd": Call => tests::is_odd,
        "sequence": Call => tests::is_sequence,
        "startingwith": Input => tests::is_startingwith,
        "string": Call => tests::is_string,
        "true": Call => tests::is_true,
        "undefined": Call => operands::is_undefined,
        "upper": Input => tests::is_upper;
    guards:
        PAID: Input => operands::same,
        ORDERED: Input => operands::same,
        SUMMAND: Input => operands::summand,
        NUMBER: Call => operands::number,
        TEXT: Call => texts::text,
        HELD: Call => operands::same,
        WITHIN: Search => operands::within,
        SLICED: Length => lists::slice,
        INDEXED: Text => operands::same,
        AUTHORITY: Input => texts::authority,
        SCHEME: Input => texts::scheme,
        COMPONENT: Input => texts::component;
}

/// A function that is called once its price is paid, and whose result is held and paid for.
fn priced<F, Rv, Args>(
    name: &'static str,
    price: Price,
    function: F,
) -> impl Fn(&mut State<'_, '_>, Rest<ValueOrKwargs>) -> Result<Value, Error> + Send + Sync
where
    F: Function<Rv, Args>,
    Rv: FunctionResult,
    Args: for<'a> FunctionArgs<'a>,
{
    let function = Value::from_function(function);
    let takes_absent = TAKE_ABSENT.contains(&name);
    move |state, arguments| {
        let arguments = arguments.into_values();
        if !takes_absent && arguments.iter().any(is_absent) {
            return Err(Error::from(ErrorKind::UndefinedError));
        }
        with_means(state, |means| price.pay(&arguments, means))?;
        let result = function.call(state, &arguments)?;
        with_means(state, |means| price::hold(result, means))
    }
}

/// Runs a function with the means of the rendering.
fn with_means<T>(
    state: &State<'_, '_>,
    run: impl FnOnce(&Means) -> Result<T, Error>,
) -> Result<T, Error> {
    let holder = state.lookup(METER);
    let means = holder.as_ref().and_then(Value::downcast_object_ref);
    run(means.ok_or_else(|| invalid("nothing pays for this"))?)
}
