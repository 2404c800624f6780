//! Of whom an event tells, and who may see it.

use chrono::{DateTime, Utc};
use domain::circles::{Circle, Circles, Viewer};
use schemas::location::Updated;
use schemas::{AccountId, CircleId, Event, OrgId, Recorded, SYSTEM_ORG};

use super::channel::Channel;

/// What decides who sees an event of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sight {
    /// Whom it tells of.
    pub(super) of: AccountId,
    /// When what it tells of was so, by the person's clock.
    pub(super) at: DateTime<Utc>,
    /// The organization in whose part of the log it stands.
    org: Option<OrgId>,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Position,
    Crossing(CircleId),
    /// A call for help, with those who were alerted.
    Sos(Vec<AccountId>),
}

impl Sight {
    /// What the event tells of a person, if it does.
    pub(super) fn of(recorded: &Recorded) -> Option<Self> {
        let (of, at, kind) = match &recorded.event {
            Event::LocationUpdated(data) => return Some(Self::of_position(data)),
            Event::PlaceEntered(data) | Event::PlaceLeft(data) => {
                let kind = Kind::Crossing(data.circle_id.clone());
                (data.user_id, data.recorded_at, kind)
            }
            Event::SosTriggered(data) => {
                let kind = Kind::Sos(data.audience.clone());
                (data.user_id, data.recorded_at, kind)
            }
            Event::SosAcknowledged(data) | Event::SosResolved(data) => {
                let kind = Kind::Sos(data.audience.clone());
                (data.user_id, data.recorded_at, kind)
            }
            _ => return None,
        };
        let org = &recorded.stream.org;
        let org = (org.as_str() != SYSTEM_ORG).then(|| org.clone());
        Some(Self { of, at, org, kind })
    }

    /// What decides who sees a position.
    pub(super) fn of_position(fix: &Updated) -> Self {
        Self {
            of: fix.user_id,
            at: fix.recorded_at,
            org: None,
            kind: Kind::Position,
        }
    }

    /// The channel that carries it.
    pub(super) fn channel(&self) -> Channel {
        match self.kind {
            Kind::Position => Channel::Locations,
            Kind::Crossing(_) => Channel::Places,
            Kind::Sos(_) => Channel::Sos,
        }
    }

    /// Whether a viewer may see it now.
    pub(super) fn is_for(&self, viewer: &Viewer, circles: &Circles, now: DateTime<Utc>) -> bool {
        if circles.is_forgotten(self.of) {
            return false;
        }
        match (&self.kind, viewer) {
            (Kind::Position, _) => circles.may_see(viewer, self.of, self.at, now),
            // A call stands in the log once for all persons, and once for each organization.
            (Kind::Sos(audience), Viewer::Account(account)) => {
                self.org.is_none() && (*account == self.of || audience.contains(account))
            }
            (Kind::Sos(_), Viewer::Organization(org)) => self.org.as_ref() == Some(org),
            (Kind::Crossing(_), Viewer::Account(account)) if *account == self.of => true,
            (Kind::Crossing(circle), Viewer::Account(account)) => {
                let circle = circles.circle(circle);
                let share = circle.is_some_and(|circle| {
                    circle.has(*account) && circle.had(*account, self.at) && circle.has(self.of)
                });
                share && !circles.hides(self.of, now)
            }
            (Kind::Crossing(_), Viewer::Organization(org)) => {
                self.org.as_ref() == Some(org)
                    && circles.are_connected(viewer, self.of)
                    && !circles.hides(self.of, now)
            }
        }
    }

    /// Those who could be meant, among whom [`Sight::is_for`] decides.
    pub(super) fn candidates(&self, circles: &Circles) -> Vec<Viewer> {
        let own = self.org.iter().cloned().map(Viewer::Organization);
        let mut viewers: Vec<Viewer> = own.collect();
        match &self.kind {
            Kind::Position => {
                let others = circles.audience(self.of).into_iter().map(Viewer::Account);
                viewers.extend(others);
                let organizations = circles.current_orgs_of(self.of).into_iter().cloned();
                viewers.extend(organizations.map(Viewer::Organization));
            }
            Kind::Crossing(circle) => {
                let members = circles.circle(circle).into_iter();
                let members = members.flat_map(Circle::members);
                let others = members.filter(|member| *member != self.of);
                viewers.extend(others.map(Viewer::Account));
            }
            Kind::Sos(audience) => {
                let others = audience.iter().copied().filter(|other| *other != self.of);
                viewers.extend(others.map(Viewer::Account));
            }
        }
        viewers.push(Viewer::Account(self.of));
        viewers
    }
}
