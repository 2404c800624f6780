//! The filter of runs, as given in the address of a page.

use axum::http::Uri;
use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use serde::Serialize;
use service::HttpError;

use crate::paging::{Parameters, wrong};

/// The states that a run may be in.
pub(super) const STATES: [&str; 6] = [
    "QUEUED",
    "RUNNING",
    "WAITING",
    "SUCCEEDED",
    "FAILED",
    "CANCELLED",
];
/// Maximum length of a search text.
const MAX_TEXT: usize = 200;

/// A filter of runs. Absent fields do not restrict it.
#[derive(Debug, Default, Serialize)]
pub(super) struct Filter {
    pub(super) workflow: Option<String>,
    pub(super) state: Option<String>,
    pub(super) from: Option<DateTime<Utc>>,
    pub(super) to: Option<DateTime<Utc>>,
    /// The id of a run, or a text in payloads.
    pub(super) q: Option<String>,
}

impl Filter {
    pub(super) fn of(uri: &Uri) -> Result<Self, HttpError> {
        let given = Parameters::of(uri)?;
        // A form sends fields that were not filled in as empty ones.
        let text = |name| -> Result<Option<String>, HttpError> {
            let text = given
                .one(name)?
                .map(str::trim)
                .filter(|text| !text.is_empty());
            match text {
                Some(text) if text.contains('\0') => Err(wrong(name, "cannot contain U+0000")),
                text => Ok(text.map(str::to_owned)),
            }
        };
        let state = text("state")?;
        if let Some(state) = &state
            && !STATES.contains(&state.as_str())
        {
            return Err(wrong(
                "state",
                &format!("must be one of {}", STATES.join(", ")),
            ));
        }
        let q = text("q")?;
        if q.as_ref().is_some_and(|q| q.len() > MAX_TEXT) {
            return Err(wrong("q", &format!("must have at most {MAX_TEXT} bytes")));
        }
        let time = |name| text(name)?.map(|text| moment(name, &text)).transpose();
        Ok(Self {
            workflow: text("workflow")?,
            state,
            from: time("from")?,
            to: time("to")?,
            q,
        })
    }

    /// Returns the text as written in JSON, in lower case.
    pub(super) fn needle(&self) -> Option<String> {
        let written = serde_json::to_string(self.q.as_ref()?).ok()?;
        let inner = written.strip_prefix('"')?.strip_suffix('"')?;
        Some(inner.to_lowercase())
    }

    /// Returns those of the given states that match the filter.
    pub(super) fn states(&self, among: &[&str]) -> Vec<String> {
        let passes = |state: &&&str| self.state.as_deref().is_none_or(|own| own == **state);
        among
            .iter()
            .filter(passes)
            .map(|state| (*state).to_owned())
            .collect()
    }

    /// Whether it restricts anything.
    pub(super) fn is_set(&self) -> bool {
        let Self {
            workflow,
            state,
            from,
            to,
            q,
        } = self;
        workflow.is_some() || state.is_some() || from.is_some() || to.is_some() || q.is_some()
    }
}

/// Parses a time as sent by a browser's field, or a day, in UTC if no zone is named.
fn moment(name: &str, text: &str) -> Result<DateTime<Utc>, HttpError> {
    let exact = || text.parse::<DateTime<Utc>>().ok();
    let minute = || NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M").ok();
    let day = || text.parse::<NaiveDate>().ok()?.and_hms_opt(0, 0, 0);
    let read = exact().or_else(|| minute().or_else(day).map(|time| time.and_utc()));
    // Postgres has no times beyond these years.
    let within =
        |time: &DateTime<Utc>| (0..=9_999_i64).contains(&(time.timestamp() / 31_556_952 + 1970));
    read.filter(within).ok_or_else(|| {
        wrong(
            name,
            "must be a day or a time, such as 2026-11-21 or 2026-11-21T09:30",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(query: &str) -> Result<Filter, String> {
        let uri = format!("/dashboard/runs?{query}").parse().unwrap();
        Filter::of(&uri).map_err(|error| error.message.into_owned())
    }

    #[test]
    fn fields_that_are_left_empty_ask_for_nothing() {
        assert!(!filter("workflow=&state=&from=&to=&q=+").unwrap().is_set());
        assert!(!filter("").unwrap().is_set());
        assert!(filter("state=FAILED").unwrap().is_set());
    }

    #[test]
    fn times_may_be_days_minutes_or_exact() {
        for text in [
            "2026-11-21",
            "2026-11-21T00:00",
            "2026-11-21T01:00:00%2B01:00",
        ] {
            let from = filter(&format!("from={text}")).unwrap().from.unwrap();
            assert_eq!(from.to_rfc3339(), "2026-11-21T00:00:00+00:00");
        }
    }

    #[test]
    fn what_is_wrong_is_said_by_name() {
        for (query, word) in [
            ("state=DONE", "state: must be one of"),
            ("from=yesterday", "from: must be a day"),
            ("to=%2B262000-01-01", "to: must be"),
            ("workflow=%00", "workflow: cannot"),
            ("q=1&q=2", "q is given more than once"),
        ] {
            let message = filter(query).unwrap_err();
            assert!(message.starts_with(word), "{query}: {message}");
        }
        assert!(filter(&format!("q={}", "x".repeat(201))).is_err());
    }

    #[test]
    fn a_text_is_looked_for_as_json_writes_it() {
        let needle = filter("q=A%22B%0A%C3%9C").unwrap().needle();
        assert_eq!(needle.unwrap(), "a\\\"b\\nü");
    }

    #[test]
    fn an_action_keeps_within_the_state_that_is_asked_for() {
        let all = filter("").unwrap();
        assert_eq!(all.states(&["FAILED"]), ["FAILED"]);
        assert!(
            filter("state=SUCCEEDED")
                .unwrap()
                .states(&["FAILED"])
                .is_empty()
        );
    }
}
