mod contacts;
mod kinds;
mod properties;

use chrono::{DateTime, TimeZone as _, Utc};
use schemas::Event;
use serde_json::Value;

use super::{Draft, Kind, parse_object};
use crate::FieldError;

/// Example records of a kind.
struct Case {
    kind: Kind,
    whole: Value,
    least: Value,
}

fn read(kind: Kind, object: &Value) -> Result<Draft, FieldError> {
    parse_object(kind, object.as_object().expect("an object").clone())
}

fn at(second: u32) -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 11, 21, 9, 0, second).unwrap()
}

/// The data of an event.
fn decided(event: &Event) -> Value {
    event.public_data().unwrap()
}
