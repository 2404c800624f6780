//! The types a record's field can have, read from JSON or from a cell of a file.

use chrono::{DateTime, Utc};
use schemas::RecordId;
use serde_json::Value;

use crate::FieldError;
use crate::text::{NOT_A_TIME, bounded, id, json_type, rfc3339};

/// A field's value as it was given.
#[derive(Debug)]
pub(super) enum Given<'a> {
    /// By a JSON object; `null` is absent.
    Json(Value),
    /// By a cell of a file; an empty cell is absent.
    Cell(&'a str),
}

/// A type that a field can have.
pub(super) trait FieldValue: Sized {
    /// Reads what was given; `None` is absent.
    fn read(field: &str, given: Given<'_>) -> Result<Option<Self>, FieldError>;
}

/// Characters in one text field. Whole records stay far below what one event may weigh.
const MAX_TEXT: usize = 1_000;

impl FieldValue for String {
    /// An empty string is absent, since a file could not tell the two apart.
    fn read(field: &str, given: Given<'_>) -> Result<Option<Self>, FieldError> {
        let text = match given {
            Given::Json(Value::Null) => return Ok(None),
            Given::Json(Value::String(text)) => text,
            Given::Json(other) => {
                let reason = format!("must be a string, not {}", json_type(&other));
                return Err(FieldError::new(field, reason));
            }
            Given::Cell(text) => text.to_owned(),
        };
        if text.contains('\0') {
            return Err(FieldError::new(field, "must not have NUL characters"));
        }
        bounded(field, &text, MAX_TEXT)?;
        Ok(Some(text).filter(|text| !text.is_empty()))
    }
}

impl FieldValue for RecordId {
    fn read(field: &str, given: Given<'_>) -> Result<Option<Self>, FieldError> {
        let text = match given {
            Given::Json(Value::Null) | Given::Cell("") => return Ok(None),
            Given::Json(Value::String(text)) => text,
            Given::Json(other) => {
                let reason = format!("must be a string, not {}", json_type(&other));
                return Err(FieldError::new(field, reason));
            }
            Given::Cell(text) => text.to_owned(),
        };
        id(field, &text)?;
        Ok(Some(Self::new(text)))
    }
}

impl FieldValue for DateTime<Utc> {
    fn read(field: &str, given: Given<'_>) -> Result<Option<Self>, FieldError> {
        let time = match &given {
            Given::Json(Value::Null) | Given::Cell("") => return Ok(None),
            Given::Json(Value::String(text)) => rfc3339(text),
            Given::Json(_) => None,
            Given::Cell(text) => rfc3339(text.trim()),
        };
        time.map(Some)
            .ok_or_else(|| FieldError::new(field, NOT_A_TIME))
    }
}
