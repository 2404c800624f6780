//! The requested part of the feed, and its format.

use axum::http::{HeaderMap, StatusCode, Uri, header};
use domain::webhook;
use event_log::{EventLog, PositionError};
use schemas::{AggregateType, Log};
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
pub struct FeedQuery {
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

impl FeedQuery {
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

    /// Whether an event of this kind of aggregate may be one that is requested.
    pub(super) fn wants_of(&self, kind: AggregateType) -> bool {
        use AggregateType as Kind;
        let group = match kind {
            // No feed shows these.
            Kind::Organization | Kind::Account | Kind::Claim | Kind::Secret | Kind::Delivery => {
                return false;
            }
            // Their events are of several groups of types.
            Kind::Workflow | Kind::Run | Kind::Cause => return true,
            Kind::Track => "location",
            Kind::Presence => "place",
            Kind::Key
            | Kind::Webhook
            | Kind::Company
            | Kind::Deal
            | Kind::Contact
            | Kind::Order
            | Kind::Lead
            | Kind::Client
            | Kind::Circle
            | Kind::Sos => kind.token(),
        };
        let is_of_group =
            |pattern: &String| pattern == "*" || pattern.split('.').next() == Some(group);
        self.types.is_empty() || self.types.iter().any(is_of_group)
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

#[cfg(test)]
mod tests {
    use schemas::{CATALOG, Visibility};

    use super::*;

    fn query(types: &[&str]) -> FeedQuery {
        FeedQuery {
            form: Form::Lines,
            after: None,
            types: types.iter().map(|of| (*of).to_owned()).collect(),
            limit: None,
        }
    }

    #[test]
    fn the_type_of_an_aggregate_shows_whether_its_events_can_be_asked_for() {
        let contacts = query(&["contact.created", "run.*"]);
        assert!(contacts.wants_of(AggregateType::Contact));
        assert!(contacts.wants_of(AggregateType::Run));
        assert!(!contacts.wants_of(AggregateType::Company));
        assert!(!contacts.wants_of(AggregateType::Account));
        assert!(query(&["*"]).wants_of(AggregateType::Presence));
        assert!(query(&["place.left"]).wants_of(AggregateType::Presence));
        assert!(!query(&["place.left"]).wants_of(AggregateType::Track));
        assert!(!query(&[]).wants_of(AggregateType::Secret));
    }

    #[test]
    fn every_type_that_can_be_asked_for_is_of_a_kind_that_can_be() {
        let public = CATALOG
            .iter()
            .filter(|entry| entry.visibility == Visibility::Public);
        for entry in public {
            let only = query(&[entry.name]);
            let mut kinds = AggregateType::ALL.iter();
            assert!(kinds.any(|kind| only.wants_of(*kind)), "{}", entry.name);
        }
    }
}
