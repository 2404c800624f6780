//! Requests on circles.

use serde_json::{Value, json};

use crate::Invalid;
use crate::location::{LATITUDES, LONGITUDES, kept};
use crate::object::{Errors, Object};

const MAX_NAME: usize = 200;
/// A place smaller than the error of most fixes would flap, one larger than this is a region.
const RADIUS_M: std::ops::RangeInclusive<f64> = 10.0..=100_000.0;

/// A request for a new circle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameRequest {
    /// Its name.
    pub name: String,
}

impl NameRequest {
    /// Reads a request from a JSON body.
    pub fn parse(body: Value) -> Result<Self, Invalid> {
        let errors = Errors::default();
        let request = Object::open("", body, &errors).and_then(|mut object| {
            let name = object.required_name("name", MAX_NAME)?;
            Some(Self { name })
        });
        errors.settle(request)
    }
}

/// A request to join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinRequest {
    /// The code of the invite.
    pub code: String,
}

impl JoinRequest {
    /// Reads a request from a JSON body.
    pub fn parse(body: Value) -> Result<Self, Invalid> {
        let errors = Errors::default();
        let request = Object::open("", body, &errors).and_then(|mut object| {
            let code = object.required_string("code")?.trim().to_owned();
            if code.is_empty() {
                object.error("code", "must not be empty");
            }
            Some(Self { code })
        });
        errors.settle(request)
    }
}

/// A request to watch a place.
#[derive(Clone, Debug, PartialEq)]
pub struct PlaceRequest {
    /// Its name.
    pub name: String,
    /// The latitude of its centre.
    pub lat: f64,
    /// The longitude of its centre.
    pub lng: f64,
    /// Its radius in metres.
    pub radius_m: f64,
}

impl PlaceRequest {
    /// Reads a request from a JSON body.
    pub fn parse(body: Value) -> Result<Self, Invalid> {
        let errors = Errors::default();
        let request = Object::open("", body, &errors).and_then(|mut object| {
            let name = object.required_name("name", MAX_NAME);
            let lat = object.required_number("lat", LATITUDES);
            let lng = object.required_number("lng", LONGITUDES);
            let radius_m = object.required_number("radius_m", RADIUS_M);
            Some(Self {
                name: name?,
                lat: kept(lat?),
                lng: kept(lng?),
                radius_m: radius_m?,
            })
        });
        errors.settle(request)
    }

    /// The part that is sealed.
    pub fn personal(&self) -> Value {
        json!({
            "name": self.name, "lat": self.lat, "lng": self.lng, "radius_m": self.radius_m,
        })
    }
}
