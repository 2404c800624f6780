//! One position.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::{LATITUDES, LONGITUDES, kept};
use crate::object::{Errors, Object};
use crate::text;

const MAX_PLACE_NAME: usize = 200;

/// Where a person was, as they sent it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fix {
    /// Latitude in degrees.
    pub lat: f64,
    /// Longitude in degrees.
    pub lng: f64,
    /// How far off it may be, in metres.
    pub accuracy: Option<f64>,
    /// In metres per second.
    pub speed: Option<f64>,
    /// What people call the place.
    pub place_name: Option<String>,
    /// The sender's battery, in percent.
    pub battery: Option<f64>,
    /// When it was made, if the sender said so.
    pub recorded_at: Option<DateTime<Utc>>,
}

impl Fix {
    /// Reads the fix at `place`, which must not have been made more than `ahead` after `now`.
    /// Unknown fields are ignored: the specification's own clients may send more.
    pub(super) fn read(
        place: String,
        value: Value,
        now: DateTime<Utc>,
        ahead: Duration,
        errors: &Errors,
    ) -> Option<Self> {
        let mut object = Object::open(place, value, errors)?;
        let lat = object.required_number("lat", LATITUDES);
        let lng = object.required_number("lng", LONGITUDES);
        Some(Self {
            accuracy: object.positive_or_zero("accuracy"),
            speed: object.positive_or_zero("speed"),
            place_name: place_name(&mut object),
            battery: object.number("battery", 0.0..=100.0),
            recorded_at: recorded_at(&mut object, now, ahead),
            lat: kept(lat?),
            lng: kept(lng?),
        })
    }

    /// The part that is sealed.
    pub fn personal(&self) -> Value {
        json!({
            "lat": self.lat, "lng": self.lng, "accuracy": self.accuracy, "speed": self.speed,
            "place_name": self.place_name, "battery": self.battery,
        })
    }
}

fn place_name(object: &mut Object<'_>) -> Option<String> {
    let name = object.string("place_name")?;
    let field = object.place_of("place_name");
    if let Err(error) = text::bounded(&field, &name, MAX_PLACE_NAME) {
        object.errors().take_in(error);
    }
    if name.contains('\0') {
        object.error("place_name", "must not contain NUL characters");
    }
    Some(name)
}

fn recorded_at(
    object: &mut Object<'_>,
    now: DateTime<Utc>,
    ahead: Duration,
) -> Option<DateTime<Utc>> {
    let at = object.time("recorded_at")?;
    if at > now + ahead {
        let seconds = ahead.as_secs_f64();
        let reason = format!("must not be more than {seconds} seconds in the future");
        object.error("recorded_at", reason);
    }
    Some(at)
}
