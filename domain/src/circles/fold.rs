//! The fold of all circles: who sees whom, and when.

mod stored;

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};

use chrono::{DateTime, Utc};
use schemas::circle::CircleOwner;
use schemas::{AccountId, AggregateType, CircleId, Event, OrgId, Recorded};
use smallvec::SmallVec;

use super::{Circle, Pauses, Place};

#[cfg(test)]
pub(super) use stored::restored;

/// The positions of up to this many members of an organization's circles are read one member after
/// the other. Beyond that, everybody's are read.
pub const FOLLOWED_ONE_BY_ONE: usize = 200;

/// The index of a circle among all. Every member of every circle holds one, and circle ids would
/// take ten times the memory.
type Slot = usize;

/// A person or organization that views others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Viewer {
    /// A person.
    Account(AccountId),
    /// An organization, with its webhooks, events and sockets.
    Organization(OrgId),
}

/// All circles, folded from the events of circles and accounts in the order of the log. An event
/// delivered twice changes nothing.
///
/// Invites are left out: creating or using one reads the log, and kept here they would only
/// accumulate.
///
/// *Now* means after the last event applied, whatever the clocks say: a slow clock must not show a
/// person who has left.
#[derive(Clone, Debug, Default)]
pub struct Circles {
    all: Vec<Circle>,
    by_id: HashMap<CircleId, Slot>,
    /// Circles by the owner who created them.
    made: HashMap<CircleOwner, Vec<Slot>>,
    /// Every circle that a person was ever in, ordered by circle id.
    of_account: HashMap<AccountId, SmallVec<[Slot; 2]>>,
    /// Every circle in which a person named a place.
    places_by: HashMap<AccountId, BTreeSet<Slot>>,
    pauses: HashMap<AccountId, Pauses>,
    forgotten: HashSet<AccountId>,
    /// The sequence of the last event of an account.
    accounts_through: u64,
}

impl Circles {
    /// Folds the circles from these events.
    pub fn fold<'e>(events: impl IntoIterator<Item = &'e Recorded>) -> Self {
        let mut circles = Self::default();
        for event in events {
            circles.apply(event);
        }
        circles
    }

    /// Applies an event; one that is not about circles or sharing changes nothing.
    pub fn apply(&mut self, recorded: &Recorded) {
        if recorded.stream.aggregate == AggregateType::Account {
            self.accounts_through = self.accounts_through.max(recorded.sequence);
        }
        match &recorded.event {
            Event::CircleCreated(created) => {
                if let Entry::Vacant(new) = self.by_id.entry(created.circle_id.clone()) {
                    let slot = *new.insert(self.all.len());
                    self.all.push(Circle::new(created, recorded));
                    let made = self.made.entry(created.owner.clone()).or_default();
                    made.push(slot);
                }
            }
            Event::CircleMemberLeft(left) => {
                self.apply_to(&left.circle_id, recorded);
            }
            Event::CirclePlaceRemoved(removed) => {
                self.apply_to(&removed.circle_id, recorded);
            }
            Event::CircleMemberJoined(joined) if !self.forgotten.contains(&joined.user_id) => {
                if let Some(slot) = self.apply_to(&joined.circle_id, recorded) {
                    self.remember(joined.user_id, slot);
                }
            }
            Event::CirclePlaceAdded(added) if !self.forgotten.contains(&added.by) => {
                if let Some(slot) = self.apply_to(&added.circle_id, recorded) {
                    self.places_by.entry(added.by).or_default().insert(slot);
                }
            }
            Event::AccountSharingPaused(paused) => {
                let pauses = self.pauses.entry(paused.account_id).or_default();
                pauses.apply(recorded);
            }
            Event::AccountSharingResumed(resumed) => {
                if let Some(pauses) = self.pauses.get_mut(&resumed.account_id) {
                    pauses.apply(recorded);
                }
            }
            Event::AccountForgotten(forgotten) => self.forget(forgotten.account_id),
            _ => {}
        }
    }

    /// Returns the circle's slot.
    fn apply_to(&mut self, circle: &CircleId, recorded: &Recorded) -> Option<Slot> {
        let slot = *self.by_id.get(circle)?;
        self.all.get_mut(slot)?.apply(recorded);
        Some(slot)
    }

    /// Records that a person was in a circle.
    fn remember(&mut self, account: AccountId, slot: Slot) {
        let id = |slot: Slot| self.all.get(slot).map(|circle| &circle.id);
        let circles = self.of_account.entry(account).or_default();
        if let Err(place) = circles.binary_search_by(|one| id(*one).cmp(&id(slot))) {
            circles.insert(place, slot);
        }
    }

    fn forget(&mut self, account: AccountId) {
        self.forgotten.insert(account);
        self.pauses.remove(&account);
        self.made.remove(&CircleOwner::Account(account));
        let joined = self.of_account.remove(&account).unwrap_or_default();
        let named = self.places_by.remove(&account).unwrap_or_default();
        for slot in joined.iter().chain(&named) {
            if let Some(circle) = self.all.get_mut(*slot) {
                circle.forget(account);
            }
        }
    }

    /// The sequence of the last event of an account that was applied.
    pub fn accounts_through(&self) -> u64 {
        self.accounts_through
    }

    /// A circle.
    pub fn circle(&self, id: &CircleId) -> Option<&Circle> {
        self.all.get(*self.by_id.get(id)?)
    }

    fn at<'s>(&self, slots: impl Iterator<Item = &'s Slot>) -> impl Iterator<Item = &Circle> {
        slots.filter_map(|slot| self.all.get(*slot))
    }

    /// How many circles an owner has created.
    pub fn made_by(&self, owner: &CircleOwner) -> usize {
        self.made.get(owner).map_or(0, Vec::len)
    }

    /// The circles that an organization has created, in the order of the log.
    pub fn of_organization(&self, org: &OrgId) -> impl Iterator<Item = &Circle> {
        let made = self.made.get(&CircleOwner::Organization(org.clone()));
        self.at(made.into_iter().flatten())
    }

    /// Everybody who is in one of an organization's circles now, once for each of these circles.
    pub fn members_of(&self, org: &OrgId) -> impl Iterator<Item = AccountId> {
        self.of_organization(org).flat_map(Circle::members)
    }

    /// The circles that a person was ever in.
    fn ever_of(&self, account: AccountId) -> impl Iterator<Item = &Circle> {
        self.at(self.of_account.get(&account).into_iter().flatten())
    }

    /// The circles that a person is in now, ordered by id.
    pub fn circles_of(&self, account: AccountId) -> impl Iterator<Item = &Circle> {
        self.ever_of(account)
            .filter(move |circle| circle.has(account))
    }

    /// All others who share a circle with a person now: those alerted when they call for help.
    pub fn audience(&self, account: AccountId) -> BTreeSet<AccountId> {
        let members = self.circles_of(account).flat_map(Circle::members);
        members.filter(|member| *member != account).collect()
    }

    /// The organizations that had a circle with a person at the given time.
    pub fn orgs_of(&self, account: AccountId, at: DateTime<Utc>) -> BTreeSet<&OrgId> {
        let circles = self.ever_of(account);
        circles
            .filter(|circle| circle.had(account, at))
            .filter_map(organization)
            .collect()
    }

    /// The organizations that have a circle with a person now.
    pub fn current_orgs_of(&self, account: AccountId) -> BTreeSet<&OrgId> {
        self.circles_of(account).filter_map(organization).collect()
    }

    /// Whether a viewer shares a circle with a person now, and so may ask where they are. What the
    /// viewer gets is decided by [`Self::may_see`].
    pub fn are_connected(&self, viewer: &Viewer, subject: AccountId) -> bool {
        self.is_own(viewer, subject)
            || self
                .circles_of(subject)
                .any(|circle| belongs_to(circle, viewer))
    }

    /// Whether a viewer now sees a fix that a person made at `fix_time`: they share a circle now,
    /// they shared one then, and the person does not hide now and did not hide then. Everybody
    /// sees themselves.
    pub fn may_see(
        &self,
        viewer: &Viewer,
        subject: AccountId,
        fix_time: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> bool {
        if self.is_own(viewer, subject) {
            return true;
        }
        let then = |circle: &Circle| match viewer {
            Viewer::Account(account) => circle.had(*account, fix_time),
            Viewer::Organization(org) => organization(circle) == Some(org),
        };
        self.are_connected(viewer, subject)
            && !self.hides(subject, now)
            && !self.hid(subject, fix_time)
            && self
                .ever_of(subject)
                .any(|circle| circle.had(subject, fix_time) && then(circle))
    }

    fn is_own(&self, viewer: &Viewer, subject: AccountId) -> bool {
        *viewer == Viewer::Account(subject) && !self.forgotten.contains(&subject)
    }

    /// Whether a person currently hides their position.
    pub fn hides(&self, account: AccountId, now: DateTime<Utc>) -> bool {
        let pauses = self.pauses.get(&account);
        pauses.is_some_and(|pauses| pauses.hidden_until(now).is_some())
    }

    /// Whether a person hid their position at the given time.
    pub fn hid(&self, account: AccountId, at: DateTime<Utc>) -> bool {
        let pauses = self.pauses.get(&account);
        pauses.is_some_and(|pauses| pauses.hide(at))
    }

    /// Whether a person was forgotten.
    pub fn is_forgotten(&self, account: AccountId) -> bool {
        self.forgotten.contains(&account)
    }

    /// Every watched place with its circle, in no particular order.
    pub fn watched_places(&self) -> impl Iterator<Item = (&Circle, &Place)> {
        self.all
            .iter()
            .flat_map(|circle| circle.places().map(move |place| (circle, place)))
    }

    /// The places of all circles that a person is in now.
    pub fn places_of(&self, account: AccountId) -> impl Iterator<Item = (&Circle, &Place)> {
        self.circles_of(account)
            .flat_map(|circle| circle.places().map(move |place| (circle, place)))
    }
}

fn organization(circle: &Circle) -> Option<&OrgId> {
    match &circle.owner {
        CircleOwner::Organization(org) => Some(org),
        CircleOwner::Account(_) => None,
    }
}

fn belongs_to(circle: &Circle, viewer: &Viewer) -> bool {
    match viewer {
        Viewer::Account(account) => circle.has(*account),
        Viewer::Organization(org) => organization(circle) == Some(org),
    }
}
