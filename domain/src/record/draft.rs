//! A record as given, before the log is read for what was there.

use chrono::{DateTime, Utc};
use schemas::RecordId;
use serde_json::{Map, Value};

use super::kind::{Fields, Kind};
use super::value::{record_id, time};
use super::values::Values;
use crate::FieldError;
use crate::text;

/// A record as given: read and checked field by field.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    pub(super) id: Option<RecordId>,
    pub(super) created_at: Option<DateTime<Utc>>,
    pub(super) fields: Fields,
}

impl Draft {
    pub(super) fn read(kind: Kind, mut values: Values<'_>) -> Result<Self, FieldError> {
        time("updatedAt", values.take("updatedAt"))?;
        Ok(Self {
            id: record_id("id", values.take("id"))?,
            created_at: time("createdAt", values.take("createdAt"))?,
            fields: Fields::read(kind, &mut values)?,
        })
    }

    /// The id, where one was given.
    pub fn id(&self) -> Option<&RecordId> {
        self.id.as_ref()
    }

    /// The draft of the record addressed as `id`; an id in the draft must be the same.
    pub fn addressed(mut self, id: RecordId) -> Result<Self, FieldError> {
        match &self.id {
            Some(own) if *own != id => Err(FieldError::new("id", "must equal the id in the path")),
            _ => {
                self.id = Some(id);
                Ok(self)
            }
        }
    }
}

/// Reads a record from JSON.
pub fn parse(kind: Kind, value: Value) -> Result<Draft, FieldError> {
    match value {
        Value::Object(fields) => parse_object(kind, fields),
        _ => Err(FieldError::new("body", "must be a JSON object")),
    }
}

/// Reads a record from a JSON object.
pub fn parse_object(kind: Kind, object: Map<String, Value>) -> Result<Draft, FieldError> {
    Draft::read(kind, Values::of_object(kind, object)?)
}

/// Parses a record's id from a path.
pub fn parse_id(given: &str) -> Result<RecordId, FieldError> {
    text::id("id", given)?;
    Ok(RecordId::new(given))
}
