//! Reads one step; what is particular to a type stands in the type's own file.

use std::ops::RangeInclusive;

use schemas::StepId;
use schemas::workflow::{Action, Delay, Join, Step};
use serde_json::Value;

use super::{condition, http, notify, on, record, wait};
use crate::object::{Errors, Object};

const MAX_ID: usize = 64;
const MAX_NEXT: usize = 100;
/// How long a step may wait: a year.
pub(super) const SECONDS: RangeInclusive<f64> = 0.0..=31_536_000.0;

#[derive(Clone, Copy)]
enum Type {
    Trigger,
    Http,
    Notify,
    Condition,
    Delay,
    WaitForEvent,
    Record,
}

const TYPES: &[(&str, Type)] = &[
    ("TRIGGER", Type::Trigger),
    ("HTTP", Type::Http),
    ("NOTIFY", Type::Notify),
    ("CONDITION", Type::Condition),
    ("DELAY", Type::Delay),
    ("WAIT_FOR_EVENT", Type::WaitForEvent),
    ("RECORD", Type::Record),
];

const JOINS: &[(&str, Join)] = &[("any", Join::Any), ("all", Join::All)];

pub(super) fn read(place: String, value: Value, errors: &Errors) -> Option<Step> {
    let mut object = Object::open(place, value, errors)?;
    let id = step_id(&mut object);
    // Without a known type nobody can say which fields belong here.
    let kind = object.required_word("type", TYPES)?;
    let next = match kind {
        // It goes on by `then` and `else` alone.
        Type::Condition => Some(Vec::new()),
        _ => steps_of(&mut object, "next"),
    };
    let join = object.word("join", JOINS).unwrap_or_default();
    let action = match kind {
        Type::Trigger => on::read(&mut object).map(Action::Trigger),
        Type::Http => http::read(&mut object).map(Action::Http),
        Type::Notify => notify::read(&mut object).map(Action::Notify),
        Type::Condition => condition::read(&mut object).map(Action::Condition),
        Type::Delay => delay(&mut object).map(Action::Delay),
        Type::WaitForEvent => wait::read(&mut object).map(Action::WaitForEvent),
        Type::Record => record::read(&mut object).map(Action::Record),
    };
    object.finish();
    Some(Step {
        id: id?,
        action: action?,
        next: next?,
        join,
    })
}

fn step_id(object: &mut Object<'_>) -> Option<StepId> {
    let id = object.required_string("id")?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=MAX_ID).contains(&id.len()) && id.bytes().all(plain) {
        return Some(StepId::new(id));
    }
    object.error(
        "id",
        format!("must be 1 to {MAX_ID} letters, digits, _ or -"),
    );
    None
}

/// Reads a list of steps that follow.
pub(super) fn steps_of(object: &mut Object<'_>, name: &str) -> Option<Vec<StepId>> {
    if object.take_absent(name) {
        return Some(Vec::new());
    }
    let steps = object.strings(name, MAX_NEXT)?;
    for (nth, id) in steps.iter().enumerate() {
        if steps[..nth].contains(id) {
            object.error(&format!("{name}[{nth}]"), "lists the same step twice");
        }
    }
    Some(steps.into_iter().map(StepId::new).collect())
}

fn delay(object: &mut Object<'_>) -> Option<Delay> {
    let seconds = object.required_number("seconds", SECONDS)?;
    Some(Delay { seconds })
}
