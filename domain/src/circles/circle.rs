//! One circle: its members, invites and places.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use schemas::circle::{CircleOwner, Created};
use schemas::{AccountId, CircleId, Event, PlaceId, Recorded, Sealed};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::{Period, stored_time};

/// The current state of a circle, with its members' history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Circle {
    /// The circle.
    pub id: CircleId,
    /// Its owner.
    pub owner: CircleOwner,
    /// Its name, sealed under its owner.
    pub name: Sealed,
    /// When it was created.
    #[serde(with = "stored_time")]
    pub created_at: DateTime<Utc>,
    members: BTreeMap<AccountId, SmallVec<[Period; 1]>>,
    invites: Vec<Invite>,
    places: BTreeMap<PlaceId, Place>,
    /// The sequence of the last event applied.
    reached: u64,
}

/// A code that lets somebody join.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invite {
    /// The keyed hash of the code.
    pub code_hash: String,
    /// When it expires.
    #[serde(with = "stored_time")]
    pub expires_at: DateTime<Utc>,
}

/// A place that a circle watches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The place.
    pub id: PlaceId,
    /// Who named it.
    pub by: AccountId,
    /// `{name, lat, lng, radius_m}`, sealed under the account that named it.
    pub sealed: Sealed,
    /// Since when it is watched.
    #[serde(with = "stored_time")]
    pub added_at: DateTime<Utc>,
}

impl Circle {
    /// Folds a circle from its own events; `None` if there is none.
    pub fn fold<'e>(events: impl IntoIterator<Item = &'e Recorded>) -> Option<Self> {
        let mut events = events.into_iter();
        let first = events.next()?;
        let Event::CircleCreated(created) = &first.event else {
            return None;
        };
        let mut circle = Self::new(created, first);
        for event in events {
            circle.apply(event);
        }
        Some(circle)
    }

    pub(super) fn new(created: &Created, recorded: &Recorded) -> Self {
        Self {
            id: created.circle_id.clone(),
            owner: created.owner.clone(),
            name: created.name.clone(),
            created_at: recorded.time,
            members: BTreeMap::new(),
            invites: Vec::new(),
            places: BTreeMap::new(),
            reached: recorded.sequence,
        }
    }

    /// Applies an event of this circle; one already applied changes nothing.
    pub(super) fn apply(&mut self, recorded: &Recorded) {
        if recorded.sequence <= self.reached {
            return;
        }
        self.reached = recorded.sequence;
        match &recorded.event {
            Event::CircleMemberJoined(joined) => self.join(joined.user_id, recorded.time),
            Event::CircleMemberLeft(left) => self.leave(left.user_id, recorded.time),
            Event::CircleInviteMade(made) => self.invites.push(Invite {
                code_hash: made.code_hash.clone(),
                expires_at: made.expires_at,
            }),
            Event::CirclePlaceAdded(added) => {
                let place = Place {
                    id: added.place_id.clone(),
                    by: added.by,
                    sealed: added.place.clone(),
                    added_at: recorded.time,
                };
                self.places.insert(place.id.clone(), place);
            }
            Event::CirclePlaceRemoved(removed) => {
                self.places.remove(&removed.place_id);
            }
            _ => {}
        }
    }

    fn join(&mut self, account: AccountId, at: DateTime<Utc>) {
        if !self.has(account) {
            let periods = self.members.entry(account).or_default();
            periods.push(Period::beginning(at));
        }
    }

    fn leave(&mut self, account: AccountId, at: DateTime<Utc>) {
        let last = self.members.get_mut(&account).and_then(|p| p.last_mut());
        if let Some(last) = last
            && last.until.is_none()
        {
            last.until = Some(at);
        }
    }

    /// Removes everything of a person; what they sealed can no longer be read.
    pub(super) fn forget(&mut self, account: AccountId) {
        self.members.remove(&account);
        self.places.retain(|_, place| place.by != account);
    }

    /// Whether a person is currently a member.
    pub fn has(&self, account: AccountId) -> bool {
        let last = self
            .members
            .get(&account)
            .and_then(|periods| periods.last());
        last.is_some_and(|last| last.until.is_none())
    }

    /// Whether a person was a member at the given time.
    pub fn had(&self, account: AccountId, at: DateTime<Utc>) -> bool {
        let periods = self.members.get(&account);
        periods.is_some_and(|periods| periods.iter().any(|period| period.contains(at)))
    }

    /// How often a person has joined.
    pub(super) fn joins(&self, account: AccountId) -> usize {
        self.members.get(&account).map_or(0, SmallVec::len)
    }

    /// Current and past members who were not forgotten, ordered by id.
    pub(super) fn ever_members(&self) -> impl Iterator<Item = AccountId> {
        self.members.keys().copied()
    }

    /// The current members, ordered by id.
    pub fn members(&self) -> impl Iterator<Item = AccountId> {
        self.ever_members().filter(|account| self.has(*account))
    }

    /// Since when a current member has been one.
    pub fn member_since(&self, account: AccountId) -> Option<DateTime<Utc>> {
        let last = self.members.get(&account)?.last()?;
        last.until.is_none().then_some(last.from)
    }

    /// The places that it watches.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        self.places.values()
    }

    /// A place that it watches.
    pub fn place(&self, id: &PlaceId) -> Option<&Place> {
        self.places.get(id)
    }

    /// How many invites have not expired.
    pub(super) fn open_invites(&self, now: DateTime<Utc>) -> usize {
        let open = |invite: &&Invite| invite.expires_at > now;
        self.invites.iter().filter(open).count()
    }

    /// The newest invite whose code has this hash.
    pub fn invite(&self, code_hash: &str) -> Option<&Invite> {
        let mut invites = self.invites.iter().rev();
        invites.find(|invite| invite.code_hash == code_hash)
    }
}
