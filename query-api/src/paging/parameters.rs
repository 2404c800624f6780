//! The parameters of a query string.

use axum::extract::Query;
use axum::http::Uri;
use chrono::{DateTime, Utc};
use service::HttpError;

/// A request's parameters, by name.
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Reads a request's query string.
    pub(crate) fn of(uri: &Uri) -> Result<Self, HttpError> {
        Query::try_from_uri(uri)
            .map(|Query(parameters)| Self(parameters))
            .map_err(|_| HttpError::bad_request("the query string cannot be read"))
    }

    /// Returns the only value of a parameter, if it is given.
    pub(crate) fn one(&self, name: &str) -> Result<Option<&str>, HttpError> {
        let mut values = self.0.iter().filter(|(given, _)| given == name);
        let first = values.next().map(|(_, value)| value.as_str());
        if values.next().is_some() {
            return Err(HttpError::bad_request(format!(
                "{name} is given more than once"
            )));
        }
        Ok(first)
    }

    /// Returns the whole number, 1 or more, that a parameter gives.
    pub(crate) fn count(&self, name: &str, default: i64) -> Result<i64, HttpError> {
        let Some(text) = self.one(name)? else {
            return Ok(default);
        };
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(HttpError::bad_request(format!(
                "{name}: must be an integer, not {text:?}"
            )));
        }
        // A number beyond an i64 is beyond every bound as well.
        let beyond = if text.starts_with('-') { 0 } else { i64::MAX };
        match text.parse().unwrap_or(beyond) {
            ..1 => Err(HttpError::bad_request(format!(
                "{name}: must be 1 or more, not {text}"
            ))),
            count => Ok(count),
        }
    }
}

/// Parses a parameter's text as a time. An unescaped `+` of an offset arrives as a space.
pub(crate) fn time_of(text: &str) -> Option<DateTime<Utc>> {
    let time = DateTime::parse_from_rfc3339(&text.replace(' ', "+")).ok()?;
    Some(time.to_utc())
}

/// Returns the error for an invalid parameter.
pub(crate) fn wrong(name: &str, reason: &str) -> HttpError {
    HttpError::bad_request(format!("{name}: {reason}"))
}
