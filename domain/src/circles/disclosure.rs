//! What an event discloses about a person, and to whom it may be shown: the single decision behind
//! feeds, sockets, webhooks and workflow triggers.

use chrono::{DateTime, Utc};
use schemas::location::Updated;
use schemas::{AccountId, CircleId, Event};

use super::{Circle, Circles, Viewer};

/// The facts that decide who may be shown an event about a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disclosure {
    /// The person it is about.
    pub of: AccountId,
    /// When it was true, by the person's clock.
    pub at: DateTime<Utc>,
    /// What it discloses.
    pub kind: DisclosureKind,
}

/// What is disclosed about a person.
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
    /// What an event discloses about a person, if anything.
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

    /// What a position discloses.
    pub fn of_position(fix: &Updated) -> Self {
        Self {
            of: fix.user_id,
            at: fix.recorded_at,
            kind: DisclosureKind::Position,
        }
    }
}

impl Circles {
    /// Whether an event may be shown to a viewer now: always if it is about nobody, otherwise only
    /// if [`Self::may_be_disclosed`] allows it.
    pub fn shows(&self, viewer: &Viewer, event: &Event, now: DateTime<Utc>) -> bool {
        let disclosure = Disclosure::of(event);
        disclosure.is_none_or(|disclosure| self.may_be_disclosed(viewer, &disclosure, now))
    }

    /// Whether this may be disclosed to a viewer now. An organization sees nothing of persons who
    /// are no longer in any of its circles, earlier events included. Nobody sees where a person
    /// who hides is or was. A call for help is meant to be heard, hidden or not.
    pub fn may_be_disclosed(
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
