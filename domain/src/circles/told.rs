//! What an event tells of a person, and to whom it may be shown: the one judgement behind feeds,
//! sockets, webhooks and what sets workflows off.

use chrono::{DateTime, Utc};
use schemas::location::Updated;
use schemas::{AccountId, CircleId, Event};

use super::{Circle, Circles, Viewer};

/// What decides who may be shown an event of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Whom it tells of.
    pub of: AccountId,
    /// When what it tells of was so, by the person's clock.
    pub at: DateTime<Utc>,
    /// What it tells.
    pub kind: ToldKind,
}

/// What is told of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToldKind {
    /// Where they are.
    Position,
    /// That they came to a circle's place or left it.
    Crossing(CircleId),
    /// That they called for help, with those who were alerted.
    Call(Vec<AccountId>),
}

impl Told {
    /// What an event tells of a person, if it does.
    pub fn by(event: &Event) -> Option<Self> {
        let (of, at, kind) = match event {
            Event::LocationUpdated(fix) => return Some(Self::by_position(fix)),
            Event::PlaceEntered(data) | Event::PlaceLeft(data) => {
                let kind = ToldKind::Crossing(data.circle_id.clone());
                (data.user_id, data.recorded_at, kind)
            }
            Event::SosTriggered(data) => {
                let kind = ToldKind::Call(data.audience.clone());
                (data.user_id, data.recorded_at, kind)
            }
            Event::SosAcknowledged(data) | Event::SosResolved(data) => {
                let kind = ToldKind::Call(data.audience.clone());
                (data.user_id, data.recorded_at, kind)
            }
            _ => return None,
        };
        Some(Self { of, at, kind })
    }

    /// What a position tells.
    pub fn by_position(fix: &Updated) -> Self {
        Self {
            of: fix.user_id,
            at: fix.recorded_at,
            kind: ToldKind::Position,
        }
    }
}

impl Circles {
    /// Whether an event may be shown to a viewer now: one that tells of nobody always, any other
    /// only by [`Self::may_be_told`].
    pub fn shows(&self, viewer: &Viewer, event: &Event, now: DateTime<Utc>) -> bool {
        Told::by(event).is_none_or(|told| self.may_be_told(viewer, &told, now))
    }

    /// Whether a viewer may be told this of a person now. An organization is told nothing of those
    /// who are in none of its circles any more, what came before included; nobody is told where
    /// somebody is or was who hides. A call for help is meant to be heard, hidden or not.
    pub fn may_be_told(&self, viewer: &Viewer, told: &Told, now: DateTime<Utc>) -> bool {
        if self.is_forgotten(told.of) {
            return false;
        }
        match (&told.kind, viewer) {
            (ToldKind::Position, _) => self.may_see(viewer, told.of, told.at, now),
            (_, Viewer::Account(account)) if *account == told.of => true,
            (ToldKind::Crossing(circle), Viewer::Account(account)) => {
                let shared = |circle: &Circle| {
                    circle.has(*account) && circle.had(*account, told.at) && circle.has(told.of)
                };
                self.circle(circle).is_some_and(shared) && !self.hides(told.of, now)
            }
            (ToldKind::Crossing(_), Viewer::Organization(_)) => {
                self.are_connected(viewer, told.of) && !self.hides(told.of, now)
            }
            (ToldKind::Call(audience), Viewer::Account(account)) => audience.contains(account),
            (ToldKind::Call(_), Viewer::Organization(_)) => self.are_connected(viewer, told.of),
        }
    }
}
