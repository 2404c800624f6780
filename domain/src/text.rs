//! Rules for text from outside.

use chrono::{DateTime, Datelike as _, Utc};

use crate::FieldError;

/// Reads a display name: trimmed, not blank, at most `max` characters, on one line.
pub(crate) fn name(field: &str, given: &str, max: usize) -> Result<String, FieldError> {
    let name = given.trim();
    if name.is_empty() {
        return Err(FieldError::new(field, "must not be empty"));
    }
    if name.chars().any(char::is_control) {
        return Err(FieldError::new(
            field,
            "must not contain control characters",
        ));
    }
    bounded(field, name, max)?;
    Ok(name.to_owned())
}

/// Checks an id chosen by the caller: 1 to 128 characters, none of them a control character (ids
/// are sent in headers and URLs).
pub(crate) fn id(field: &str, given: &str) -> Result<(), FieldError> {
    if given.is_empty() {
        return Err(FieldError::new(field, "must not be empty"));
    }
    if given.chars().any(char::is_control) {
        return Err(FieldError::new(
            field,
            "must not contain control characters",
        ));
    }
    bounded(field, given, 128)
}

/// Refuses text of more than `max` characters.
pub(crate) fn bounded(field: &str, given: &str, max: usize) -> Result<(), FieldError> {
    // No character is shorter than a byte, so most text need not be counted.
    if given.len() > max && given.chars().count() > max {
        return Err(FieldError::new(
            field,
            format!("must have at most {max} characters"),
        ));
    }
    Ok(())
}

/// The error message where [`rfc3339`] returns `None`.
pub(crate) const NOT_A_TIME: &str = "must be an RFC 3339 time such as 2026-11-21T09:30:00Z";

/// Parses a time, truncated to the microseconds that the read models can store, so that log and
/// read model agree.
pub(crate) fn rfc3339(given: &str) -> Option<DateTime<Utc>> {
    let time = DateTime::parse_from_rfc3339(given).ok()?;
    let time = DateTime::from_timestamp_micros(time.timestamp_micros())?;
    // An offset or a leap second can push a time out of the years that RFC 3339 can represent.
    (1..=9_999).contains(&time.year()).then_some(time)
}

/// Truncates foreign text for an error message.
pub(crate) fn shown(given: &str) -> String {
    given.chars().take(64).collect()
}

/// Shortens a text to its first `most` characters; `…` shows that there were more.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The type of a JSON value, for error messages.
pub(crate) fn json_type(value: &serde_json::Value) -> &'static str {
    use serde_json::Value;
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_of_a_year_that_rfc_3339_can_represent() {
        for outside in [
            "9999-12-31T23:59:60Z",
            "9999-12-31T23:59:59-01:00",
            "0000-12-31T23:59:59Z",
            "0001-01-01T00:00:00+01:00",
        ] {
            assert_eq!(rfc3339(outside), None, "{outside}");
        }
        let last = rfc3339("9999-12-31T23:59:59.9999999Z").unwrap();
        assert_eq!(last.to_rfc3339(), "9999-12-31T23:59:59.999999+00:00");
        let leap = rfc3339("2016-12-31T23:59:60Z").unwrap();
        assert_eq!(leap.to_rfc3339(), "2017-01-01T00:00:00+00:00");
    }
}
