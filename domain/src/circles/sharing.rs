//! Hiding a person's position for a while.

use chrono::{DateTime, Utc};
use schemas::account::{SharingPaused, SharingResumed};
use schemas::{AccountId, Event, Recorded};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Period;
use crate::object::{Errors, Object};
use crate::{FieldError, Invalid};

/// When a person hid their position.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pauses {
    /// Each with its end: the requested one, or an earlier one.
    periods: Vec<Period>,
    reached: u64,
}

impl Pauses {
    /// Folds the pauses from an account's own events.
    pub fn fold<'e>(events: impl IntoIterator<Item = &'e Recorded>) -> Self {
        let mut pauses = Self::default();
        for event in events {
            pauses.apply(event);
        }
        pauses
    }

    /// Applies an event of the account; one already applied changes nothing.
    pub(super) fn apply(&mut self, recorded: &Recorded) {
        if recorded.sequence <= self.reached {
            return;
        }
        self.reached = recorded.sequence;
        match &recorded.event {
            Event::AccountSharingPaused(paused) => {
                self.end(recorded.time);
                self.periods.push(Period {
                    from: recorded.time,
                    until: Some(paused.until),
                });
            }
            Event::AccountSharingResumed(_) => self.end(recorded.time),
            _ => {}
        }
    }

    fn end(&mut self, at: DateTime<Utc>) {
        if let Some(last) = self.periods.last_mut()
            && last.until.is_none_or(|until| at < until)
        {
            last.until = Some(at);
        }
    }

    /// Whether a fix made at that time is hidden.
    pub fn hide(&self, at: DateTime<Utc>) -> bool {
        self.periods.iter().any(|period| period.contains(at))
    }

    /// Until when the person hides, if they do. Only the last event counts: a clock that is slower
    /// than the one that started the pause must not show anybody.
    pub fn hidden_until(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let until = self.periods.last().and_then(|last| last.until);
        until.filter(|until| now < *until)
    }

    /// The pauses, oldest first.
    pub fn periods(&self) -> &[Period] {
        &self.periods
    }
}

/// A request to be hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseRequest {
    /// When the pause ends.
    pub until: DateTime<Utc>,
}

impl PauseRequest {
    /// Reads a request from a JSON body. Whether its time is in the future is decided by [`pause`]:
    /// a repeated request gets the first response however late it is.
    pub fn parse(body: Value) -> Result<Self, Invalid> {
        let errors = Errors::default();
        let request = Object::open("", body, &errors).and_then(|mut object| {
            if object.take_absent("until") {
                object.error("until", "is required");
            }
            object.time("until").map(|until| Self { until })
        });
        errors.settle(request)
    }
}

/// Hides a person; no event if they are already hidden until exactly that time.
pub fn pause(
    account_id: AccountId,
    pauses: &Pauses,
    request: PauseRequest,
    now: DateTime<Utc>,
) -> Result<Option<Event>, FieldError> {
    let until = request.until;
    if until <= now {
        return Err(FieldError::new("until", "must be in the future"));
    }
    let news = pauses.hidden_until(now) != Some(until);
    Ok(news.then(|| Event::AccountSharingPaused(SharingPaused { account_id, until })))
}

/// Shows a person again; no event if they are not hidden.
pub fn resume(account_id: AccountId, pauses: &Pauses, now: DateTime<Utc>) -> Option<Event> {
    let hidden = pauses.hidden_until(now).is_some();
    hidden.then(|| Event::AccountSharingResumed(SharingResumed { account_id }))
}
