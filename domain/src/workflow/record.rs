//! Reads a RECORD step.

use schemas::nesting;
use schemas::workflow::Record;
use serde_json::{Map, Value};

use super::shared::check_levels;
use super::templates;
use crate::object::Object;
use crate::record::{Kind, parse_id};
use crate::template::is_template;

const COMMON_FIELDS: &[&str] = &["id", "createdAt", "updatedAt"];

pub(super) fn read(object: &mut Object<'_>) -> Option<Record> {
    let kinds: Vec<(&str, Kind)> = Kind::ALL.iter().map(|kind| (kind.name(), *kind)).collect();
    let kind = object.required_word("kind", &kinds);
    let record_id = record_id(object);
    let data = data(object, kind);
    Some(Record {
        kind: kind?.name().to_owned(),
        record_id,
        data: data?,
    })
}

fn record_id(object: &mut Object<'_>) -> Option<String> {
    if object.take_absent("recordId") {
        return None;
    }
    let id = object.string("recordId")?;
    if is_template(&id) {
        templates::check_published(object, "recordId", &Value::from(id.as_str()));
    } else if let Err(wrong) = parse_id(&id) {
        object.error("recordId", wrong.reason);
    }
    Some(id)
}

/// The values of the fields are known only at the step; their names are known now.
fn data(object: &mut Object<'_>, kind: Option<Kind>) -> Option<Map<String, Value>> {
    let data = object.require("data")?;
    let Value::Object(data) = data else {
        object.error("data", "must be an object");
        return None;
    };
    check_levels(object, "data", nesting::levels_of(&data));
    for (name, value) in &data {
        let place = format!("data.{}", crate::text::shown(name));
        if kind.is_some_and(|kind| !has_field(kind, name)) {
            object.error(&place, "unknown field");
        }
        templates::check_published(object, &place, value);
    }
    Some(data)
}

fn has_field(kind: Kind, name: &str) -> bool {
    let group = |field: &&str| field.split('.').next() == Some(name);
    COMMON_FIELDS.contains(&name) || kind.field_names().iter().any(group)
}
