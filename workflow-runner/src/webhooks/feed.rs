//! The two streams of the log whose events are delivered, and which organizations those are for.
//!
//! Each is delivered by a dispatcher of its own, with its own queues and checkpoints: sequences of
//! one mean nothing in the other. Deliveries of both are in one log, where the event's type
//! distinguishes them.

use chrono::{DateTime, Utc};
use domain::circles::Viewer;
use domain::webhook::any_matches;
use event_log::{EventLog, Page, ReadError};
use schemas::{AggregateType, Log, OrgId, Recorded};

use super::directory::When;
use crate::checkpoints::Kind;
use crate::people::People;

/// The type of positions.
const LOCATION_UPDATED: &str = "location.updated";

/// A stream whose events are delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feed {
    /// Every fact except positions: each is for the organization whose part of the log it is in.
    Events,
    /// Positions: for the organizations with a circle that the person is in.
    Locations,
}

impl Feed {
    /// The stream that contains events of this type.
    pub(super) fn of(event_type: &str) -> Self {
        if event_type == LOCATION_UPDATED {
            Self::Locations
        } else {
            Self::Events
        }
    }

    /// Whether any of its events may be of a type that these patterns match.
    pub(super) fn has_any_of(self, patterns: &[String]) -> bool {
        match self {
            Self::Events => true,
            Self::Locations => any_matches(patterns, LOCATION_UPDATED),
        }
    }

    pub(super) fn log(self) -> Log {
        match self {
            Self::Events => Log::Events,
            Self::Locations => Log::Locations,
        }
    }

    /// The kind of checkpoints for this stream.
    pub(super) fn checkpoints(self) -> Kind {
        match self {
            Self::Events => Kind::Webhooks,
            Self::Locations => Kind::LocationWebhooks,
        }
    }

    /// Label in metrics.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Locations => "locations",
        }
    }

    /// What an endpoint's filters are compared with: endpoints are in the same stream as all other
    /// facts, and are only related to positions by time.
    pub(super) fn when(self, recorded: &Recorded) -> When {
        match self {
            Self::Events => When::Behind(recorded.sequence),
            Self::Locations => When::At(recorded.time),
        }
    }

    /// A page of the events after `after` that contains those for an organization. Positions are
    /// everybody's, so none are read for an organization without members, which sees none of those
    /// in the log so far.
    pub(super) async fn page(
        self,
        log: &EventLog,
        people: &People,
        org: &OrgId,
        after: u64,
        limit: usize,
    ) -> Result<Page, ReadError> {
        match self {
            Self::Events => {
                log.catch_up()
                    .page(Log::Events, org, None, after, limit)
                    .await
            }
            Self::Locations => {
                if !has_members(people, org).await {
                    return Ok(Page::end(after));
                }
                log.catch_up()
                    .page_of_kind(AggregateType::Track, after, limit)
                    .await
            }
        }
    }
}

/// Whether anybody is in the organization's circles now.
async fn has_members(people: &People, org: &OrgId) -> bool {
    let known = || {
        people.read(|directory| {
            let mut members = directory.circles().members_of(org);
            members.next().is_some()
        })
    };
    if known() {
        return true;
    }
    // The first member may have joined a moment ago.
    people.settle().await;
    known()
}

/// Whether an event may be sent to an organization now, given what is known of persons.
pub(super) fn is_for(
    recorded: &Recorded,
    org: &OrgId,
    people: &People,
    now: DateTime<Utc>,
) -> bool {
    if !is_of_persons(recorded) {
        return true;
    }
    let viewer = Viewer::Organization(org.clone());
    people.read(|directory| directory.circles().shows(&viewer, &recorded.event, now))
}

/// Whether deciding whom an event is for requires the directory of persons.
pub(super) fn is_of_persons(recorded: &Recorded) -> bool {
    recorded.event.personal().is_some()
}
