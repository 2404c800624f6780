//! Reads one step; what is particular to a type stands in the type's own file.

use schemas::StepId;
use schemas::workflow::{Action, Join, Step};
use serde_json::Value;

use super::{http, notify};
use crate::object::{Errors, Object};

const MAX_ID: usize = 64;
const MAX_NEXT: usize = 100;

#[derive(Clone, Copy)]
enum Type {
    Trigger,
    Http,
    Notify,
}

const TYPES: &[(&str, Type)] = &[
    ("TRIGGER", Type::Trigger),
    ("HTTP", Type::Http),
    ("NOTIFY", Type::Notify),
];

const JOINS: &[(&str, Join)] = &[("any", Join::Any), ("all", Join::All)];

pub(super) fn read(place: String, value: Value, errors: &Errors) -> Option<Step> {
    let mut object = Object::open(place, value, errors)?;
    let id = step_id(&mut object);
    // Without a known type nobody can say which fields belong here.
    let kind = object.required_word("type", TYPES)?;
    let next = next_steps(&mut object);
    let join = object.word("join", JOINS).unwrap_or_default();
    let action = match kind {
        Type::Trigger => trigger(&mut object),
        Type::Http => http::read(&mut object).map(Action::Http),
        Type::Notify => notify::read(&mut object).map(Action::Notify),
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

fn next_steps(object: &mut Object<'_>) -> Option<Vec<StepId>> {
    if object.take_absent("next") {
        return Some(Vec::new());
    }
    let next = object.strings("next", MAX_NEXT)?;
    for (nth, id) in next.iter().enumerate() {
        if next[..nth].contains(id) {
            object.error(&format!("next[{nth}]"), "names the same step twice");
        }
    }
    Some(next.into_iter().map(StepId::new).collect())
}

fn trigger(object: &mut Object<'_>) -> Option<Action> {
    if !object.take_absent("on") {
        object.error(
            "on",
            "events and schedules cannot set off a workflow yet; without this field it is set \
             off by the API and by people",
        );
        return None;
    }
    Some(Action::Trigger)
}
