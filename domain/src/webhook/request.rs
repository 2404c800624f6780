//! Requests on an endpoint.

use schemas::webhook::Status;
use serde_json::Value;

use super::address::check_target;
use super::pattern::check_pattern;
use crate::object::{Errors, Object};
use crate::target::Ranges;
use crate::{Invalid, text};

const MAX_PATTERNS: usize = 100;
const MAX_DESCRIPTION: usize = 500;
const STATUSES: &[(&str, Status)] = &[("ENABLED", Status::Enabled), ("DISABLED", Status::Disabled)];

/// A new endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Where it listens.
    pub url: String,
    /// Which events it gets.
    pub events: Vec<String>,
    /// Its owner's description.
    pub description: Option<String>,
}

/// A change of an endpoint; absent fields stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeRequest {
    /// Where it listens from now on.
    pub url: Option<String>,
    /// Which events it gets from now on.
    pub events: Option<Vec<String>>,
    /// Its owner's description from now on; an inner `None` removes it.
    pub description: Option<Option<String>>,
    /// Whether it gets events from now on.
    pub status: Option<Status>,
}

impl Request {
    /// Reads a request from a JSON body; its address may lie in the public internet or in a range
    /// that is `open`.
    pub fn parse(body: Value, open: &Ranges) -> Result<Self, Invalid> {
        let errors = Errors::default();
        let request = Object::open("", body, &errors).and_then(|mut object| {
            let url = object.required_string("url");
            let url = url.and_then(|url| checked_url(&object, url, open));
            let events = events(&mut object);
            let description = description(&mut object);
            object.finish();
            Some(Self {
                url: url?,
                events: events?,
                description,
            })
        });
        errors.settle(request)
    }
}

impl ChangeRequest {
    /// Reads a request from a JSON body; its address may lie in the public internet or in a range
    /// that is `open`.
    pub fn parse(body: Value, open: &Ranges) -> Result<Self, Invalid> {
        let errors = Errors::default();
        let request = Object::open("", body, &errors).map(|mut object| {
            let url = object.string("url");
            let url = url.and_then(|url| checked_url(&object, url, open));
            let events = if object.has("events") {
                events(&mut object)
            } else {
                None
            };
            let description = object.has("description").then(|| description(&mut object));
            let status = object.word("status", STATUSES);
            object.finish();
            Self {
                url,
                events,
                description,
                status,
            }
        });
        errors.settle(request)
    }
}

fn checked_url(object: &Object<'_>, url: String, open: &Ranges) -> Option<String> {
    match check_target(&url, open) {
        Ok(()) => Some(url),
        Err(reason) => {
            object.error("url", reason);
            None
        }
    }
}

/// Absent means all, and is written as `*`.
fn events(object: &mut Object<'_>) -> Option<Vec<String>> {
    if object.take_absent("events") {
        return Some(vec!["*".to_owned()]);
    }
    let patterns = object.strings("events", MAX_PATTERNS)?;
    if patterns.is_empty() {
        object.error(
            "events",
            "must not be empty; leave the field out to receive all events",
        );
    }
    for (nth, pattern) in patterns.iter().enumerate() {
        if let Err(reason) = check_pattern(pattern) {
            object.error(&format!("events[{nth}]"), reason);
        }
    }
    Some(patterns)
}

fn description(object: &mut Object<'_>) -> Option<String> {
    let description = object.string("description")?;
    let judged = text::bounded("description", &description, MAX_DESCRIPTION);
    if let Err(error) = judged {
        object.errors().take_in(error);
    } else if description.contains('\0') {
        object.error("description", "must not contain NUL characters");
    }
    Some(description).filter(|description| !description.is_empty())
}
