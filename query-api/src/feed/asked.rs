//! The requested part of the feed, and its format.

use axum::http::{HeaderMap, StatusCode, Uri, header};
use domain::webhook;
use event_log::{EventLog, PositionError};
use schemas::Log;
use service::HttpError;

use crate::paging::Parameters;

/// The format of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One JSON object per line, up to the current end.
    Lines,
    /// Server-sent events, which continue.
    ServerSent,
}

/// The request for a feed.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The format, which also determines whether the feed continues.
    pub form: Form,
    /// The last sequence that the caller knows. Without it, lines begin with the first event and
    /// server-sent events begin now.
    pub after: Option<u64>,
    /// Patterns of types. Empty means all.
    pub types: Vec<String>,
    /// Maximum number of events.
    pub limit: Option<u64>,
}

impl Asked {
    pub(super) fn read(
        log: Log,
        event_log: &EventLog,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<Self, HttpError> {
        let parameters = Parameters::of(uri)?;
        let form = form(headers);
        // A reconnecting client repeats its first address, and sends its position in the header.
        let resumed = headers
            .get("last-event-id")
            .filter(|_| form == Form::ServerSent);
        let after = match resumed {
            Some(id) => Some(("Last-Event-ID", id.to_str().unwrap_or_default())),
            None => parameters.one("after")?.map(|after| ("after", after)),
        };
        let after = after.map(|(name, text)| position(log, event_log, name, text));
        let limit = match parameters.one("limit")? {
            Some(_) => Some(parameters.count("limit", 1)?.unsigned_abs()),
            None => None,
        };
        Ok(Self {
            form,
            after: after.transpose()?,
            types: types(parameters.one("types")?)?,
            limit,
        })
    }

    /// Whether events of this type are requested.
    pub(super) fn wants(&self, event_type: &str) -> bool {
        let matches = |pattern: &String| webhook::matches(pattern, event_type);
        self.types.is_empty() || self.types.iter().any(matches)
    }
}

fn form(headers: &HeaderMap) -> Form {
    let accepted = headers.get_all(header::ACCEPT).iter();
    let mut accepted = accepted.filter_map(|value| value.to_str().ok());
    if accepted.any(|value| value.contains("text/event-stream")) {
        Form::ServerSent
    } else {
        Form::Lines
    }
}

fn position(log: Log, event_log: &EventLog, name: &str, text: &str) -> Result<u64, HttpError> {
    let refused = |error: PositionError| match error {
        PositionError::Malformed => HttpError::bad_request(format!("{name}: {error}")),
        PositionError::OldEpoch => HttpError::new(
            StatusCode::GONE,
            format!("{name}: {error}; start again without it"),
        ),
    };
    let position = event_log.parse_position(text).map_err(refused)?;
    if position.log() == log {
        Ok(position.sequence())
    } else {
        let error = format!("{name}: the position belongs to another feed");
        Err(HttpError::bad_request(error))
    }
}

fn types(given: Option<&str>) -> Result<Vec<String>, HttpError> {
    let patterns = given.into_iter().flat_map(|given| given.split(','));
    let check = |pattern: &str| match webhook::check_pattern(pattern) {
        Ok(()) => Ok(pattern.to_owned()),
        Err(reason) => Err(HttpError::bad_request(format!(
            "types: {pattern:?} {reason}"
        ))),
    };
    patterns.map(str::trim).map(check).collect()
}
