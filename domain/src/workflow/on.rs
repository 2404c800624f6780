//! Reads what triggers a workflow automatically.

use schemas::workflow::{On, OnEvent, OnSchedule, Trigger};

use super::schedule::{DEFAULT_TIMEZONE, Schedule};
use super::templates;
use crate::object::Object;
use crate::template::Within;
use crate::webhook;

pub(super) fn read(object: &mut Object<'_>) -> Option<Trigger> {
    if object.take_absent("on") {
        return Some(Trigger::default());
    }
    let given = object.take("on")?;
    let mut on = Object::open(object.place_of("on"), given, object.errors())?;
    let read = match (on.has("event"), on.has("schedule")) {
        (true, true) => {
            on.error("schedule", "cannot be combined with event");
            None
        }
        (false, false) => {
            let place = object.place_of("on");
            object
                .errors()
                .add(place, "must have an event or a schedule");
            None
        }
        (true, false) => event(&mut on).map(On::Event),
        (false, true) => schedule(&mut on).map(On::Schedule),
    };
    on.finish();
    read.map(|on| Trigger { on: Some(on) })
}

fn event(on: &mut Object<'_>) -> Option<OnEvent> {
    let event = event_type(on);
    let filter = on.string("filter");
    if let Some(filter) = &filter {
        templates::check_test(on, "filter", filter, Within::Event);
    }
    Some(OnEvent {
        event: event?,
        filter,
    })
}

/// Reads the type of the selected events.
pub(super) fn event_type(object: &mut Object<'_>) -> Option<String> {
    let event = object.required_string("event")?;
    if webhook::only_positions_match(&event) {
        let reason = "positions do not trigger workflows; use place.entered or place.left";
        object.error("event", reason);
        return None;
    }
    match webhook::check_pattern(&event) {
        Ok(()) => Some(event),
        Err(reason) => {
            object.error("event", reason);
            None
        }
    }
}

fn schedule(on: &mut Object<'_>) -> Option<OnSchedule> {
    let schedule = on.required_string("schedule");
    let timezone = on.string("timezone");
    let (schedule, timezone) = (schedule?, timezone.unwrap_or(DEFAULT_TIMEZONE.to_owned()));
    match Schedule::parse(&schedule, &timezone) {
        Ok(_) => Some(OnSchedule { schedule, timezone }),
        Err(wrong) => {
            on.error(&wrong.field, wrong.reason);
            None
        }
    }
}
