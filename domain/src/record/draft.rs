//! A record as it was given, before the log is asked what was there.

use chrono::{DateTime, Utc};
use schemas::RecordId;
use serde_json::{Map, Value};

use super::kind::{Fields, Kind};
use super::value::{FieldValue, Given};
use crate::FieldError;
use crate::text;

/// States a kind's own fields once; `id` and `createdAt` are common to all.
macro_rules! fields {
    ($(#[$doc:meta])* $name:ident makes $record:ident { $($field:ident: $type:ty = $label:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub(super) struct $name { $($field: Option<$type>),+ }

        impl $name {
            /// The fields' names outside, in the order of the record.
            pub(super) const NAMES: &'static [&'static str] = &[$($label),+];

            /// Sets the field of that name; `None` where there is none.
            pub(super) fn set(
                &mut self,
                name: &str,
                given: crate::record::value::Given<'_>,
            ) -> Option<Result<(), FieldError>> {
                use crate::record::value::FieldValue;
                match name {
                    $($label => Some(<$type>::read(name, given).map(|value| self.$field = value)),)+
                    _ => None,
                }
            }

            /// The whole record.
            pub(super) fn complete(
                self,
                id: schemas::RecordId,
                created_at: chrono::DateTime<chrono::Utc>,
            ) -> $record {
                $record { id, $($field: self.$field,)+ created_at }
            }
        }
    };
}
pub(super) use fields;

/// A record as it was given: read and checked field by field.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    pub(super) id: Option<RecordId>,
    pub(super) created_at: Option<DateTime<Utc>>,
    pub(super) fields: Fields,
}

impl Draft {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            id: None,
            created_at: None,
            fields: Fields::new(kind),
        }
    }

    /// Sets one field by its name outside.
    pub(super) fn set(&mut self, name: &str, given: Given<'_>) -> Result<(), FieldError> {
        match name {
            "id" => self.id = RecordId::read(name, given)?,
            "createdAt" => self.created_at = DateTime::read(name, given)?,
            // Waypost's own, but part of every file and answer: who sends one back is not wrong.
            "updatedAt" => drop(DateTime::<Utc>::read(name, given)?),
            _ => {
                return self
                    .fields
                    .set(name, given)
                    .unwrap_or_else(|| Err(unknown(name)));
            }
        }
        Ok(())
    }

    pub(super) fn checked(self) -> Result<Self, FieldError> {
        self.fields.check()?;
        Ok(self)
    }

    /// The id, where one was given.
    pub fn id(&self) -> Option<&RecordId> {
        self.id.as_ref()
    }

    /// The draft of the record that is addressed as `id`; an id within must be the same.
    pub fn addressed(mut self, id: RecordId) -> Result<Self, FieldError> {
        match &self.id {
            Some(own) if *own != id => Err(FieldError::new("id", "is not the id of the path")),
            _ => {
                self.id = Some(id);
                Ok(self)
            }
        }
    }
}

/// Reads a record from a JSON object.
pub fn parse_object(kind: Kind, object: Map<String, Value>) -> Result<Draft, FieldError> {
    let mut draft = Draft::new(kind);
    for (name, value) in object {
        draft.set(&name, Given::Json(value))?;
    }
    draft.checked()
}

/// Takes a record's id from a path.
pub fn parse_id(given: &str) -> Result<RecordId, FieldError> {
    text::id("id", given)?;
    Ok(RecordId::new(given))
}

fn unknown(name: &str) -> FieldError {
    FieldError::new(text::shown(name), "unknown field")
}
