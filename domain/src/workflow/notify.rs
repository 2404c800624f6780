//! Reads a NOTIFY step.

use schemas::nesting;
use schemas::workflow::Notify;
use serde_json::{Map, Value};

use super::shared::check_levels;
use super::templates;
use crate::object::Object;

const MAX_EVENT: usize = 64;

pub(super) fn read(object: &mut Object<'_>) -> Option<Notify> {
    let event = event(object);
    let data = data(object);
    Some(Notify {
        event: event?,
        data: data?,
    })
}

/// The name becomes `custom.<event>`, which webhooks and feeds select by.
fn event(object: &mut Object<'_>) -> Option<String> {
    let event = object.required_string("event")?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let named = event.len() <= MAX_EVENT
        && event
            .split('.')
            .all(|part| !part.is_empty() && part.bytes().all(plain));
    if named {
        return Some(event);
    }
    let reason = format!(
        "must be at most {MAX_EVENT} letters, digits, _ or -, in parts with a dot between them"
    );
    object.error("event", reason);
    None
}

fn data(object: &mut Object<'_>) -> Option<Map<String, Value>> {
    if object.take_absent("data") {
        return Some(Map::new());
    }
    let data = object.object("data")?;
    check_levels(object, "data", nesting::levels_of(&data));
    for (name, value) in &data {
        templates::check_published(object, &format!("data.{}", crate::text::shown(name)), value);
    }
    Some(data)
}
