//! The types of a record's fields, read from JSON or from a cell of a file.

use chrono::{DateTime, NaiveDate, Utc};
use schemas::RecordId;
use schemas::record::OrderStatus;
use serde_json::Value;

use crate::FieldError;
use crate::text::{NOT_A_TIME, bounded, id, json_type, rfc3339};

/// A field's value as given.
#[derive(Debug)]
pub(super) enum Given<'a> {
    /// Missing, a `null` or an empty cell.
    Absent,
    /// From a JSON object.
    Json(Value),
    /// From a cell of a file.
    Cell(&'a str),
}

/// Characters in one text field. Whole records stay far below the size limit of an event.
const MAX_TEXT: usize = 1_000;
/// The limit of whole numbers that every JSON reader reads alike.
const MAX_WHOLE: u64 = 1 << 53;
/// Probabilities are kept to ten decimals. With more digits, they would not be read back from the
/// log as they were written, bit by bit.
const PERCENT_GRAIN: f64 = 1e10;

/// The words for an order's status.
const ORDER_STATUSES: [(&str, OrderStatus); 4] = [
    ("PAYMENT_PENDING", OrderStatus::PaymentPending),
    ("ACTIVE", OrderStatus::Active),
    ("COMPLETED", OrderStatus::Completed),
    ("CANCELLED", OrderStatus::Cancelled),
];

/// Text as it is. An empty string is absent, since a file could not distinguish the two.
pub(super) fn text(field: &str, given: Given<'_>) -> Result<Option<String>, FieldError> {
    let text = match given {
        Given::Absent => return Ok(None),
        Given::Json(value) => string(field, value)?,
        Given::Cell(cell) => cell.to_owned(),
    };
    if text.contains('\0') {
        return Err(FieldError::new(field, "must not contain NUL characters"));
    }
    bounded(field, &text, MAX_TEXT)?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// Required text, not of white space alone.
pub(super) fn required_text(field: &str, given: Given<'_>) -> Result<String, FieldError> {
    let filled = text(field, given)?.filter(|text| !text.trim().is_empty());
    required(field, filled)
}

/// A whole number.
pub(super) fn whole(field: &str, given: Given<'_>) -> Result<Option<i64>, FieldError> {
    let number = match given {
        Given::Absent => return Ok(None),
        Given::Json(value) => value.as_i64(),
        Given::Cell(cell) => cell.trim().parse().ok(),
    };
    number
        .filter(|number| number.unsigned_abs() <= MAX_WHOLE)
        .map(Some)
        .ok_or_else(|| {
            let reason = format!("must be a whole number from -{MAX_WHOLE} to {MAX_WHOLE}");
            FieldError::new(field, reason)
        })
}

/// A required whole number.
pub(super) fn required_whole(field: &str, given: Given<'_>) -> Result<i64, FieldError> {
    required(field, whole(field, given)?)
}

/// A whole number that is zero if absent.
pub(super) fn whole_or_zero(field: &str, given: Given<'_>) -> Result<i64, FieldError> {
    Ok(whole(field, given)?.unwrap_or_default())
}

/// A number of percent.
pub(super) fn percent(field: &str, given: Given<'_>) -> Result<Option<f64>, FieldError> {
    let number: Option<f64> = match given {
        Given::Absent => return Ok(None),
        Given::Json(value) => value.as_f64(),
        Given::Cell(cell) => cell.trim().parse().ok(),
    };
    let number = number.filter(|number| (0.0..=100.0).contains(number));
    let kept = number.map(|number| (number.abs() * PERCENT_GRAIN).round() / PERCENT_GRAIN);
    kept.map(Some)
        .ok_or_else(|| FieldError::new(field, "must be a number from 0 to 100"))
}

/// Yes or no; yes if absent.
pub(super) fn flag_or_true(field: &str, given: Given<'_>) -> Result<bool, FieldError> {
    let flag = match given {
        Given::Absent => Some(true),
        Given::Json(value) => value.as_bool(),
        // Spreadsheets write upper case.
        Given::Cell(cell) => cell.trim().to_ascii_lowercase().parse().ok(),
    };
    flag.ok_or_else(|| FieldError::new(field, "must be true or false"))
}

/// A day; of a time with an offset, the day that it names is kept.
pub(super) fn day(field: &str, given: Given<'_>) -> Result<Option<NaiveDate>, FieldError> {
    let day = match given {
        Given::Absent => return Ok(None),
        Given::Json(Value::String(text)) => calendar_day(&text),
        Given::Json(_) => None,
        Given::Cell(cell) => calendar_day(cell.trim()),
    };
    day.map(Some)
        .ok_or_else(|| FieldError::new(field, "must be a date such as 2026-11-21"))
}

fn calendar_day(text: &str) -> Option<NaiveDate> {
    let (day, rest) = text.split_at_checked(10)?;
    if !rest.is_empty() {
        rfc3339(text)?;
    }
    let digits = |range| -> Option<u32> {
        let digits: &str = day.get(range)?;
        let all = digits.bytes().all(|byte| byte.is_ascii_digit());
        all.then(|| digits.parse().ok()).flatten()
    };
    let separated = day.get(4..5) == Some("-") && day.get(7..8) == Some("-");
    let year = digits(0..4).filter(|year| separated && *year > 0)?;
    NaiveDate::from_ymd_opt(year.try_into().ok()?, digits(5..7)?, digits(8..10)?)
}

/// A point in time.
pub(super) fn time(field: &str, given: Given<'_>) -> Result<Option<DateTime<Utc>>, FieldError> {
    let time = match given {
        Given::Absent => return Ok(None),
        Given::Json(Value::String(text)) => rfc3339(&text),
        Given::Json(_) => None,
        Given::Cell(cell) => rfc3339(cell.trim()),
    };
    time.map(Some)
        .ok_or_else(|| FieldError::new(field, NOT_A_TIME))
}

/// An order's status.
pub(super) fn order_status(field: &str, given: Given<'_>) -> Result<OrderStatus, FieldError> {
    let text = match given {
        Given::Absent => None,
        Given::Json(value) => Some(string(field, value)?),
        Given::Cell(cell) => Some(cell.trim().to_owned()),
    };
    let text = required(field, text)?;
    let found = ORDER_STATUSES.iter().find(|(word, _)| *word == text);
    found.map(|(_, status)| *status).ok_or_else(|| {
        let words = ORDER_STATUSES.map(|(word, _)| word).join(", ");
        FieldError::new(field, format!("must be one of {words}"))
    })
}

/// A record's own id.
pub(super) fn record_id(field: &str, given: Given<'_>) -> Result<Option<RecordId>, FieldError> {
    let text = match given {
        Given::Absent => return Ok(None),
        Given::Json(value) => string(field, value)?,
        Given::Cell(cell) => cell.to_owned(),
    };
    id(field, &text)?;
    Ok(Some(RecordId::new(text)))
}

fn string(field: &str, value: Value) -> Result<String, FieldError> {
    match value {
        Value::String(text) => Ok(text),
        other => {
            let reason = format!("must be a string, not {}", json_type(&other));
            Err(FieldError::new(field, reason))
        }
    }
}

fn required<T>(field: &str, read: Option<T>) -> Result<T, FieldError> {
    read.ok_or_else(|| FieldError::new(field, "is required"))
}
