//! The content of a call for help.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::location::{LATITUDES, LONGITUDES, kept};
use crate::object::{Errors, Object};
use crate::{Invalid, text};

const MAX_MESSAGE: usize = 1_000;

/// A call for help; every field is optional.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Where, as latitude and longitude.
    pub place: Option<(f64, f64)>,
    /// What is wrong.
    pub message: Option<String>,
    /// When it was meant to be sent.
    pub recorded_at: Option<DateTime<Utc>>,
}

impl Request {
    /// Reads a call from a JSON body.
    pub fn parse(body: Value) -> Result<Self, Invalid> {
        let errors = Errors::default();
        let request = Object::open("", body, &errors).map(|mut object| {
            let lat = object.number("lat", LATITUDES);
            let lng = object.number("lng", LONGITUDES);
            match (lat, lng) {
                (Some(_), None) if errors.count() == 0 => {
                    object.error("lng", "is required with lat");
                }
                (None, Some(_)) if errors.count() == 0 => {
                    object.error("lat", "is required with lng");
                }
                _ => {}
            }
            Self {
                place: lat.map(kept).zip(lng.map(kept)),
                message: message(&mut object),
                recorded_at: object.time("recorded_at"),
            }
        });
        errors.settle(request)
    }

    /// The part that is sealed.
    pub fn personal(&self) -> Value {
        let (lat, lng) = self.place.unzip();
        json!({ "lat": lat, "lng": lng, "message": self.message })
    }
}

fn message(object: &mut Object<'_>) -> Option<String> {
    let message = object.string("message")?;
    if let Err(error) = text::bounded("message", &message, MAX_MESSAGE) {
        object.errors().take_in(error);
    }
    if message.contains('\0') {
        object.error("message", "must not contain NUL characters");
    }
    Some(message)
}
