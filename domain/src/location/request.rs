//! An update: one position, or many that are accepted all or none.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::Fix;
use crate::object::Errors;
use crate::{FieldError, Invalid};

/// Positions in one update at most.
pub const MAX_FIXES: usize = 100;

/// Positions of one person.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// One object.
    One(Fix),
    /// An array.
    Many(Vec<Fix>),
}

impl Request {
    /// Reads an update from a JSON body. None of its fixes may have been made more than `ahead`
    /// after `now`. An error in an array names the index and the field.
    pub fn parse(body: Value, now: DateTime<Utc>, ahead: Duration) -> Result<Self, Invalid> {
        let errors = Errors::default();
        let request = match body {
            Value::Array(items) => {
                Self::check_length(items.len())?;
                let read = |(nth, item)| Fix::read(format!("[{nth}]"), item, now, ahead, &errors);
                let fixes: Vec<_> = items.into_iter().enumerate().map(read).collect();
                fixes.into_iter().collect::<Option<_>>().map(Self::Many)
            }
            one => Fix::read(String::new(), one, now, ahead, &errors).map(Self::One),
        };
        errors.settle(request)
    }

    fn check_length(length: usize) -> Result<(), FieldError> {
        match length {
            1..=MAX_FIXES => Ok(()),
            0 => Err(FieldError::new(
                "body",
                "must contain at least one position",
            )),
            _ => {
                let reason = format!("must have at most {MAX_FIXES} positions");
                Err(FieldError::new("body", reason))
            }
        }
    }

    /// How many positions a body counts as, before anything in it is checked.
    pub fn cost(body: &Value) -> u32 {
        match body {
            Value::Array(items) if items.len() <= MAX_FIXES => {
                u32::try_from(items.len()).unwrap_or(1).max(1)
            }
            _ => 1,
        }
    }

    /// The positions in the order in which they were sent.
    pub fn fixes(&self) -> &[Fix] {
        match self {
            Self::One(fix) => std::slice::from_ref(fix),
            Self::Many(fixes) => fixes,
        }
    }
}
