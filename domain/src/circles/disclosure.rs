//! What an event tells of a person, and to whom it may be shown: the one judgement behind feeds,
//! sockets, webhooks and what sets workflows off.

use chrono::{DateTime, Utc};
use schemas::location::Updated;
use schemas::{AccountId, CircleId, Event};

use super::{Circle, Circles, Viewer};

/// What decides who may be shown an event of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disclosure {
    /// Whom it tells of.
    pub of: AccountId,
    /// When what it tells of was so, by the person's clock.
    pub at: DateTime<Utc>,
    /// What it tells.
    pub kind: DisclosureKind,
}

/// What is told of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DisclosureKind {
    /// Where they are.
    Position,
    /// That they came to a circle's place or left it.
    Crossing(CircleId),
    /// That they called for help, with those who were alerted.
    Call(Vec<AccountId>),
}

impl Disclosure {
    /// What an event tells of a person, if it does.
    pub fn of(event: &Event) -> Option<Self> {
        let (of, at, kind) = match event {
            Event::LocationUpdated(fix) => return Some(Self::of_position(fix)),
            Event::PlaceEntered(data) | Event::PlaceLeft(data) => {
                let kind = DisclosureKind::Crossing(data.circle_id.clone());
                (data.user_id, data.recorded_at, kind)
            }
            Event::SosTriggered(data) => {
                let kind = DisclosureKind::Call(data.audience.clone());
                (data.user_id, data.recorded_at, kind)
            }
            Event::SosAcknowledged(data) | Event::SosResolved(data) => {
                let kind = DisclosureKind::Call(data.audience.clone());
                (data.user_id, data.recorded_at, kind)
            }
            _ => return None,
        };
        Some(Self { of, at, kind })
    }

    /// What a position tells.
    pub fn of_position(fix: &Updated) -> Self {
        Self {
            of: fix.user_id,
            at: fix.recorded_at,
            kind: DisclosureKind::Position,
        }
    }
}

impl Circles {
    /// Whether an event may be shown to a viewer now: one that tells of nobody always, any other
    /// only by [`Self::may_be_told`].
    pub fn shows(&self, viewer: &Viewer, event: &Event, now: DateTime<Utc>) -> bool {
        Disclosure::of(event).is_none_or(|disclosure| self.may_be_told(viewer, &disclosure, now))
    }

    /// Whether a viewer may be told this of a person now. An organization is told nothing of those
    /// who are in none of its circles any more, what came before included; nobody is told where
    /// somebody is or was who hides. A call for help is meant to be heard, hidden or not.
    pub fn may_be_told(
        &self,
        viewer: &Viewer,
        disclosure: &Disclosure,
        now: DateTime<Utc>,
    ) -> bool {
        if self.is_forgotten(disclosure.of) {
            return false;
        }
        match (&disclosure.kind, viewer) {
            (DisclosureKind::Position, _) => {
                self.may_see(viewer, disclosure.of, disclosure.at, now)
            }
            (_, Viewer::Account(account)) if *account == disclosure.of => true,
            (DisclosureKind::Crossing(circle), Viewer::Account(account)) => {
                let shared = |circle: &Circle| {
                    circle.has(*account)
                        && circle.had(*account, disclosure.at)
                        && circle.has(disclosure.of)
                };
                self.circle(circle).is_some_and(shared) && !self.hides(disclosure.of, now)
            }
            (DisclosureKind::Crossing(_), Viewer::Organization(_)) => {
                self.are_connected(viewer, disclosure.of) && !self.hides(disclosure.of, now)
            }
            (DisclosureKind::Call(audience), Viewer::Account(account)) => {
                audience.contains(account)
            }
            (DisclosureKind::Call(_), Viewer::Organization(_)) => {
                self.are_connected(viewer, disclosure.of)
            }
        }
    }
}
