//! Filters of lists: by creation time, and by the content of fields.

use chrono::{DateTime, NaiveDate, NaiveTime, SubsecRound as _, TimeDelta, Utc};
use service::HttpError;
use sqlx::{Postgres, QueryBuilder};

use super::kind::{Field, Holds, Kind, is_known_by_key};
use super::query::text_parameter;
use crate::paging::{Grouping, Parameters, time_of, wrong};

/// A filter of a kind's records. Without any restriction it lists all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Filter {
    /// Records created at this time or later.
    pub(super) from: Option<DateTime<Utc>>,
    /// Records created earlier than this.
    pub(super) before: Option<DateTime<Utc>>,
    /// Records whose field has this value.
    pub(super) values: Vec<(Grouping, String)>,
}

impl Filter {
    /// Returns the filter that a request asks for, among the fields of a kind.
    pub(super) fn from_parameters(parameters: &Parameters, kind: &Kind) -> Result<Self, HttpError> {
        let (from, before) = (
            asked_time(parameters, "createdFrom")?,
            asked_time(parameters, "createdBefore")?,
        );
        if from.zip(before).is_some_and(|(from, before)| before < from) {
            let reason = "must not be earlier than createdFrom";
            return Err(wrong("createdBefore", reason));
        }
        let mut values = Vec::new();
        for grouping in [Grouping::City, Grouping::Owner] {
            if let Some(field) = kind.field(grouping)
                && let Some(value) = text_parameter(parameters, field.called)?
            {
                values.push((grouping, value));
            }
        }
        Ok(Self {
            from,
            before,
            values,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.from.is_none() && self.before.is_none() && self.values.is_empty()
    }

    /// Whether the list is restricted to a span of creation times.
    pub(super) fn has_span(&self) -> bool {
        self.from.is_some() || self.before.is_some()
    }

    /// Returns filters for the same values before the span, and after it.
    pub(super) fn outside(&self) -> impl Iterator<Item = Self> {
        let earlier = self.from.map(|from| (None, Some(from)));
        let later = self.before.map(|before| (Some(before), None));
        let spans = [earlier, later].into_iter().flatten();
        spans.map(|(from, before)| Self {
            from,
            before,
            values: self.values.clone(),
        })
    }

    /// Returns the value that a field must have.
    pub(crate) fn value(&self, grouping: Grouping) -> Option<&str> {
        let found = self.values.iter().find(|(of, _)| *of == grouping);
        found.map(|(_, value)| value.as_str())
    }

    /// Appends the filter in SQL, after other conditions.
    pub(super) fn conditions(&self, query: &mut QueryBuilder<Postgres>, kind: &Kind) {
        if let Some(from) = self.from {
            query.push(" AND created_at >= ").push_bind(from);
        }
        if let Some(before) = self.before {
            query.push(" AND created_at < ").push_bind(before);
        }
        for (grouping, value) in &self.values {
            if let Some(field) = kind.field(*grouping) {
                field.is(query, value);
            }
        }
    }
}

impl Field {
    /// Appends the SQL condition that the field has a value.
    pub(super) fn is(&self, query: &mut QueryBuilder<Postgres>, value: &str) {
        query.push(" AND ").push(self.key).push(" = ");
        match self.holds {
            Holds::Word => {
                query.push_bind(value.to_owned());
            }
            Holds::Flag if matches!(value, "true" | "false") => {
                query.push_bind(value == "true");
            }
            Holds::Flag => {
                query.push("NULL");
            }
            Holds::Text => {
                query.push("lower(left(").push_bind(value.to_owned());
                query.push(", 100))");
                // For longer values the beginning alone is not enough.
                if !is_known_by_key(value) {
                    query.push(" AND lower(").push(self.column);
                    query.push(") = lower(").push_bind(value.to_owned());
                    query.push(")");
                }
            }
        }
    }
}

/// Returns the time that a parameter gives, or the beginning of a day in UTC; `None` if it is
/// blank, as sent by an empty form.
fn asked_time(parameters: &Parameters, name: &str) -> Result<Option<DateTime<Utc>>, HttpError> {
    let text = parameters.one(name)?.unwrap_or_default().trim();
    if text.is_empty() {
        return Ok(None);
    }
    let time = time_of(text).or_else(|| beginning_of(text));
    let time = time.ok_or_else(|| {
        let form = "must be a date or an RFC 3339 time, such as 2026-01-31 or 2026-01-31T09:30:00Z";
        wrong(name, form)
    })?;
    Ok(Some(whole_micros(time)))
}

fn beginning_of(text: &str) -> Option<DateTime<Utc>> {
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    // Rejects years with more digits and months with fewer.
    let day = day.filter(|day| text.len() == 10 && day.to_string() == text)?;
    Some(day.and_time(NaiveTime::MIN).and_utc())
}

/// Rounds a time up to a whole microsecond. Postgres stores no finer times, so that a record is
/// before the result exactly if it is before the time.
fn whole_micros(time: DateTime<Utc>) -> DateTime<Utc> {
    let whole = time.trunc_subsecs(6);
    if whole < time {
        whole + TimeDelta::microseconds(1)
    } else {
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::super::kind::{CLIENTS, COMPANIES, ORDERS};
    use super::*;

    fn asked(query: &str, kind: &Kind) -> Result<Filter, String> {
        let uri = format!("/list?{query}").parse().unwrap();
        Parameters::of(&uri)
            .and_then(|parameters| Filter::from_parameters(&parameters, kind))
            .map_err(|error| error.message.into_owned())
    }

    fn conditions(query: &str, kind: &Kind) -> String {
        let mut sql = QueryBuilder::new("");
        asked(query, kind).unwrap().conditions(&mut sql, kind);
        sql.into_string()
    }

    #[test]
    fn fields_that_are_left_empty_ask_for_nothing() {
        let query = "createdFrom=&createdBefore=+&city=%20&owner=";
        assert!(asked(query, &COMPANIES).unwrap().is_empty());
        assert_eq!(conditions(query, &COMPANIES), "");
    }

    #[test]
    fn a_time_is_a_day_in_utc_or_exact() {
        for (text, time) in [
            ("2026-01-31", "2026-01-31T00:00:00Z"),
            ("2026-01-31T01:30:00%2B01:00", "2026-01-31T00:30:00Z"),
            ("2026-01-31T01:30:00+01:00", "2026-01-31T00:30:00Z"),
            (
                "2026-01-31T00:00:00.0000001Z",
                "2026-01-31T00:00:00.000001Z",
            ),
            ("0000-01-01", "0000-01-01T00:00:00Z"),
        ] {
            let filter = asked(&format!("createdFrom={text}"), &ORDERS).unwrap();
            assert_eq!(filter.from, Some(time.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_by_name() {
        let long = format!("city={}", "x".repeat(201));
        for (query, word) in [
            ("createdFrom=yesterday", "createdFrom: must be a date"),
            ("createdFrom=2026-02-30", "createdFrom: must"),
            ("createdFrom=2026-1-31", "createdFrom: must"),
            ("createdFrom=%2B26200-1-1", "createdFrom: must"),
            ("createdBefore=2026-01-31T09:30", "createdBefore: must"),
            (
                "createdFrom=2026-01-31&createdBefore=2026-01-30",
                "createdBefore: must not be earlier",
            ),
            (
                "createdFrom=2026-01-01&createdFrom=2026-01-01",
                "createdFrom is",
            ),
            ("city=a%00", "city: must not contain"),
            (long.as_str(), "city: must have at most"),
        ] {
            let message = asked(query, &CLIENTS).unwrap_err();
            assert!(message.starts_with(word), "{query}: {message}");
        }
    }

    #[test]
    fn a_kind_is_filtered_by_its_own_fields_only() {
        let query = "city=Paris&owner=Ada";
        assert_eq!(asked(query, &COMPANIES).unwrap().values.len(), 2);
        assert_eq!(
            asked(query, &CLIENTS).unwrap().value(Grouping::City),
            Some("Paris")
        );
        assert_eq!(asked(query, &CLIENTS).unwrap().value(Grouping::Owner), None);
        assert!(asked(query, &ORDERS).unwrap().is_empty());
    }

    #[test]
    fn of_a_long_text_more_than_its_beginning_is_compared() {
        let short = conditions(&format!("city={}", "ü".repeat(99)), &CLIENTS);
        assert!(!short.contains("lower(city)"), "{short}");
        let long = conditions(&format!("city={}", "ü".repeat(100)), &CLIENTS);
        assert!(long.contains("lower(city) = lower("), "{long}");
    }
}
