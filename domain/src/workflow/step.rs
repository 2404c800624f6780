//! Reads one step; what is particular to a type is in the type's own file.

use schemas::StepId;
use schemas::workflow::{Action, Delay, Join, Step, StepType};
use serde_json::Value;

use super::shared::{SECONDS, steps_of};
use super::{condition, http, notify, on, record, wait};
use crate::object::{Errors, Object};

const MAX_ID: usize = 64;

const JOINS: &[(&str, Join)] = &[("any", Join::Any), ("all", Join::All)];

pub(super) fn read(place: String, value: Value, errors: &Errors) -> Option<Step> {
    let mut object = Object::open(place, value, errors)?;
    let id = step_id(&mut object);
    // Without a known type, it is unknown which fields belong here.
    let types = StepType::ALL.map(|kind| (kind.name(), kind));
    let kind = object.required_word("type", &types)?;
    let next = match kind {
        // It continues by `then` and `else` alone.
        StepType::Condition => Some(Vec::new()),
        _ => steps_of(&mut object, "next"),
    };
    let join = object.word("join", JOINS).unwrap_or_default();
    let action = match kind {
        StepType::Trigger => on::read(&mut object).map(Action::Trigger),
        StepType::Http => http::read(&mut object).map(Action::Http),
        StepType::Notify => notify::read(&mut object).map(Action::Notify),
        StepType::Condition => condition::read(&mut object).map(Action::Condition),
        StepType::Delay => delay(&mut object).map(Action::Delay),
        StepType::WaitForEvent => wait::read(&mut object).map(Action::WaitForEvent),
        StepType::Record => record::read(&mut object).map(Action::Record),
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

fn delay(object: &mut Object<'_>) -> Option<Delay> {
    let seconds = object.required_number("seconds", SECONDS)?;
    Some(Delay { seconds })
}
