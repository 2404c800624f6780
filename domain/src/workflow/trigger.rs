//! Whether a workflow can be triggered, and the payload that its run begins with.

use chrono::{DateTime, SecondsFormat, Utc};
use schemas::workflow::{Action, Saved, Status};
use serde_json::{Map, Value};

/// After this many runs that trigger each other one after the other, nothing more is triggered.
pub const MAX_HOPS: u8 = 8;

/// The part of a workflow that a trigger needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The newest version.
    pub version: u32,
    /// Its status.
    pub status: Status,
    /// Whether it has a step where runs begin.
    pub has_trigger: bool,
}

/// Why a workflow cannot be triggered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTriggerable {
    /// It is not in use.
    #[error("the workflow is {0}; only an ACTIVE workflow can be triggered")]
    NotActive(&'static str),
    /// It has no beginning.
    #[error("the workflow has no TRIGGER step")]
    NoTrigger,
}

impl From<&Saved> for Summary {
    fn from(saved: &Saved) -> Self {
        let steps = &saved.definition.steps;
        Self {
            version: saved.version,
            status: saved.definition.status,
            has_trigger: steps
                .iter()
                .any(|step| matches!(step.action, Action::Trigger(_))),
        }
    }
}

impl Summary {
    /// The version that a new run follows.
    pub fn triggerable(self) -> Result<u32, NotTriggerable> {
        let refused = |status| Err(NotTriggerable::NotActive(status));
        match self.status {
            Status::Draft => refused("DRAFT"),
            Status::Paused => refused("PAUSED"),
            Status::Archived => refused("ARCHIVED"),
            Status::Active if !self.has_trigger => Err(NotTriggerable::NoTrigger),
            Status::Active => Ok(self.version),
        }
    }
}

/// Who requests a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggeredBy {
    /// A program with an API key.
    ApiKey,
    /// A person.
    User,
    /// An event.
    Event,
    /// A schedule.
    Schedule,
}

impl TriggeredBy {
    /// As written in the payload.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ApiKey => "api_key",
            Self::User => "user",
            Self::Event => "event",
            Self::Schedule => "schedule",
        }
    }
}

/// The payload of a run: the caller's fields, overridden by those that only the server knows.
pub fn payload(
    mut given: Map<String, Value>,
    by: TriggeredBy,
    at: DateTime<Utc>,
) -> Map<String, Value> {
    given.insert("triggeredBy".to_owned(), by.as_str().into());
    let at = at.to_rfc3339_opts(SecondsFormat::Millis, true);
    given.insert("triggeredAt".to_owned(), at.into());
    given
}
