//! Of whom an event tells, and who may see it.

use chrono::{DateTime, Utc};
use domain::circles::{Circle, Circles, Told, ToldKind, Viewer};
use schemas::location::Updated;
use schemas::{OrgId, Recorded, SYSTEM_ORG};

use super::channel::Channel;

/// What decides who sees an event of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Visibility {
    told: Told,
    /// The organization in whose part of the log it stands.
    org: Option<OrgId>,
}

impl Visibility {
    /// What the event tells of a person, if it does.
    pub(super) fn of(recorded: &Recorded) -> Option<Self> {
        let told = Told::by(&recorded.event)?;
        let org = &recorded.stream.org;
        let org =
            (told.kind != ToldKind::Position && org.as_str() != SYSTEM_ORG).then(|| org.clone());
        Some(Self { told, org })
    }

    /// What decides who sees a position.
    pub(super) fn of_position(fix: &Updated) -> Self {
        let told = Told::by_position(fix);
        Self { told, org: None }
    }

    /// What it tells.
    pub(super) fn told(&self) -> &Told {
        &self.told
    }

    /// The channel that carries it.
    pub(super) fn channel(&self) -> Channel {
        match self.told.kind {
            ToldKind::Position => Channel::Locations,
            ToldKind::Crossing(_) => Channel::Places,
            ToldKind::Call(_) => Channel::Sos,
        }
    }

    /// Whether a viewer may see it now.
    pub(super) fn is_for(&self, viewer: &Viewer, circles: &Circles, now: DateTime<Utc>) -> bool {
        self.stands_for(viewer) && circles.may_be_told(viewer, &self.told, now)
    }

    /// A call stands in the log once for all persons, and once for each organization; a crossing
    /// once for all who share its circle. Positions are for whoever may see them.
    fn stands_for(&self, viewer: &Viewer) -> bool {
        match (&self.told.kind, viewer) {
            (ToldKind::Position, _) | (ToldKind::Crossing(_), Viewer::Account(_)) => true,
            (ToldKind::Call(_), Viewer::Account(_)) => self.org.is_none(),
            (_, Viewer::Organization(org)) => self.org.as_ref() == Some(org),
        }
    }

    /// Those who could be meant, among whom [`Visibility::is_for`] decides.
    pub(super) fn candidates(&self, circles: &Circles) -> Vec<Viewer> {
        let of = self.told.of;
        let own = self.org.iter().cloned().map(Viewer::Organization);
        let mut viewers: Vec<Viewer> = own.collect();
        match &self.told.kind {
            ToldKind::Position => {
                let others = circles.audience(of).into_iter().map(Viewer::Account);
                viewers.extend(others);
                let organizations = circles.current_orgs_of(of).into_iter().cloned();
                viewers.extend(organizations.map(Viewer::Organization));
            }
            ToldKind::Crossing(circle) => {
                let members = circles.circle(circle).into_iter();
                let members = members.flat_map(Circle::members);
                let others = members.filter(|member| *member != of);
                viewers.extend(others.map(Viewer::Account));
            }
            ToldKind::Call(audience) => {
                let others = audience.iter().copied().filter(|other| *other != of);
                viewers.extend(others.map(Viewer::Account));
            }
        }
        viewers.push(Viewer::Account(of));
        viewers
    }
}
