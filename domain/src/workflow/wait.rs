//! Reads a `WAIT_FOR_EVENT` step.

use schemas::workflow::WaitForEvent;

use super::on::event_type;
use super::shared::{SECONDS, steps_of};
use super::templates;
use crate::object::Object;
use crate::template::Within;

pub(super) fn read(object: &mut Object<'_>) -> Option<WaitForEvent> {
    let event = event_type(object);
    let matching = object.string("match");
    if let Some(matching) = &matching {
        templates::check_test(object, "match", matching, Within::Both);
    }
    let limited = !object.take_absent("timeoutSeconds");
    let timeout_seconds = object.number("timeoutSeconds", SECONDS);
    let on_timeout = steps_of(object, "onTimeout");
    if !limited && on_timeout.as_ref().is_some_and(|steps| !steps.is_empty()) {
        object.error("onTimeout", "requires timeoutSeconds");
    }
    Some(WaitForEvent {
        event: event?,
        matching,
        timeout_seconds,
        on_timeout: on_timeout?,
    })
}
