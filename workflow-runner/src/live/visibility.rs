//! Whom an event is about, and who may see it.

use chrono::{DateTime, Utc};
use domain::circles::{Circle, Circles, Disclosure, DisclosureKind, Viewer};
use schemas::location::Updated;
use schemas::{OrgId, Recorded, SYSTEM_ORG};

use super::channel::Channel;

/// Decides who sees an event of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Visibility {
    disclosure: Disclosure,
    /// The organization in whose part of the log it is.
    org: Option<OrgId>,
}

impl Visibility {
    /// The visibility of an event, if it discloses something about a person.
    pub(super) fn of(recorded: &Recorded) -> Option<Self> {
        let disclosure = Disclosure::of(&recorded.event)?;
        let org = &recorded.stream.org;
        let org = (disclosure.kind != DisclosureKind::Position && org.as_str() != SYSTEM_ORG)
            .then(|| org.clone());
        Some(Self { disclosure, org })
    }

    /// The visibility of a position.
    pub(super) fn of_position(fix: &Updated) -> Self {
        let disclosure = Disclosure::of_position(fix);
        Self {
            disclosure,
            org: None,
        }
    }

    /// What it discloses.
    pub(super) fn disclosure(&self) -> &Disclosure {
        &self.disclosure
    }

    /// The channel that carries it.
    pub(super) fn channel(&self) -> Channel {
        match self.disclosure.kind {
            DisclosureKind::Position => Channel::Locations,
            DisclosureKind::Crossing(_) => Channel::Places,
            DisclosureKind::Call(_) => Channel::Sos,
        }
    }

    /// Whether a viewer may see it now.
    pub(super) fn is_for(&self, viewer: &Viewer, circles: &Circles, now: DateTime<Utc>) -> bool {
        self.is_recorded_for(viewer) && circles.may_be_disclosed(viewer, &self.disclosure, now)
    }

    /// A call is in the log once for all persons, and once for each organization; a crossing once
    /// for all who share its circle. Positions are for everyone who may see them.
    fn is_recorded_for(&self, viewer: &Viewer) -> bool {
        match (&self.disclosure.kind, viewer) {
            (DisclosureKind::Position, _) | (DisclosureKind::Crossing(_), Viewer::Account(_)) => {
                true
            }
            (DisclosureKind::Call(_), Viewer::Account(_)) => self.org.is_none(),
            (_, Viewer::Organization(org)) => self.org.as_ref() == Some(org),
        }
    }

    /// Possible viewers, among whom [`Visibility::is_for`] decides.
    pub(super) fn candidates(&self, circles: &Circles) -> Vec<Viewer> {
        let of = self.disclosure.of;
        let own = self.org.iter().cloned().map(Viewer::Organization);
        let mut viewers: Vec<Viewer> = own.collect();
        match &self.disclosure.kind {
            DisclosureKind::Position => {
                let others = circles.audience(of).into_iter().map(Viewer::Account);
                viewers.extend(others);
                let organizations = circles.current_orgs_of(of).into_iter().cloned();
                viewers.extend(organizations.map(Viewer::Organization));
            }
            DisclosureKind::Crossing(circle) => {
                let members = circles.circle(circle).into_iter();
                let members = members.flat_map(Circle::members);
                let others = members.filter(|member| *member != of);
                viewers.extend(others.map(Viewer::Account));
            }
            DisclosureKind::Call(audience) => {
                let others = audience.iter().copied().filter(|other| *other != of);
                viewers.extend(others.map(Viewer::Account));
            }
        }
        viewers.push(Viewer::Account(of));
        viewers
    }
}
