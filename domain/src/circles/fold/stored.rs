//! The stored form of the fold, so that it need not be rebuilt from all events.

use std::collections::{HashMap, HashSet};

use schemas::AccountId;
use schemas::circle::CircleOwner;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Circles;
use crate::circles::{Circle, Pauses};

/// The stored part; the rest is derived from it.
#[derive(Serialize, Deserialize)]
struct Stored<All, OfAccounts, Accounts> {
    all: All,
    pauses: OfAccounts,
    forgotten: Accounts,
    accounts_through: u64,
}

impl Serialize for Circles {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let stored = Stored {
            all: &self.all,
            pauses: &self.pauses,
            forgotten: &self.forgotten,
            accounts_through: self.accounts_through,
        };
        stored.serialize(to)
    }
}

impl<'d> Deserialize<'d> for Circles {
    fn deserialize<D: Deserializer<'d>>(from: D) -> Result<Self, D::Error> {
        type Owned = Stored<Vec<Circle>, HashMap<AccountId, Pauses>, HashSet<AccountId>>;
        let stored = Owned::deserialize(from)?;
        let mut circles = Self {
            all: stored.all,
            pauses: stored.pauses,
            forgotten: stored.forgotten,
            accounts_through: stored.accounts_through,
            ..Self::default()
        };
        circles.index();
        Ok(circles)
    }
}

impl Circles {
    /// The version of the stored form. Increment it when changing the form, or what events do to
    /// the circles: a fold stored by another version is rebuilt.
    pub const FORM: u8 = 1;

    /// Rebuilds the indexes of the circles.
    fn index(&mut self) {
        for (slot, circle) in self.all.iter().enumerate() {
            self.by_id.insert(circle.id.clone(), slot);
            let made = self.made.entry(circle.owner.clone()).or_default();
            made.push(slot);
            for place in circle.places() {
                self.places_by.entry(place.by).or_default().insert(slot);
            }
        }
        for account in &self.forgotten {
            self.made.remove(&CircleOwner::Account(*account));
        }
        let mut by_id: Vec<_> = self.all.iter().enumerate().collect();
        by_id.sort_unstable_by_key(|(_, circle)| &circle.id);
        for (slot, circle) in by_id {
            for account in circle.ever_members() {
                self.of_account.entry(account).or_default().push(slot);
            }
        }
    }
}

/// Stores a fold and reads it back.
#[cfg(test)]
pub(in crate::circles) fn restored(circles: &Circles) -> Circles {
    postcard::from_bytes(&stored(circles)).unwrap()
}

#[cfg(test)]
fn stored(circles: &Circles) -> Vec<u8> {
    postcard::to_extend(circles, Vec::new()).unwrap()
}

#[cfg(test)]
mod tests {
    use schemas::account::{Forgotten, SharingPaused};
    use schemas::circle::{MemberJoined, PlaceAdded};
    use schemas::{CircleId, Event, PlaceId};

    use super::*;
    use crate::circles::tests::{History, at, sealed};

    const ADA: AccountId = AccountId(1);
    const BOB: AccountId = AccountId(2);

    /// A circle of Ada's with Bob and a place that he named, and one of Bob's.
    fn history() -> History {
        let mut history = History::default();
        let family = CircleId::from("family");
        history.circle(0, "family", CircleOwner::Account(ADA));
        history.circle(0, "bobs", CircleOwner::Account(BOB));
        let joined = MemberJoined {
            circle_id: family.clone(),
            user_id: BOB,
        };
        history.add(1, Event::CircleMemberJoined(joined));
        let added = PlaceAdded {
            circle_id: family,
            place_id: PlaceId::from("home"),
            by: BOB,
            place: sealed(),
        };
        history.add(2, Event::CirclePlaceAdded(added));
        let paused = SharingPaused {
            account_id: BOB,
            until: at(9),
        };
        history.add(3, Event::AccountSharingPaused(paused));
        history
    }

    #[test]
    fn what_was_stored_goes_on_as_if_it_had_not_been() {
        let mut history = history();
        let mut circles = restored(&Circles::fold(&history.0));
        assert_eq!(circles.made_by(&CircleOwner::Account(BOB)), 1);
        assert_eq!(circles.circles_of(BOB).count(), 2);
        assert_eq!(circles.places_of(ADA).count(), 1);
        assert!(circles.hides(BOB, at(4)) && !circles.hides(BOB, at(9)));
        let forgotten = Forgotten { account_id: BOB };
        history.add(4, Event::AccountForgotten(forgotten));
        circles.apply(&history.0[history.0.len() - 1]);
        for circles in [restored(&circles), circles] {
            assert!(circles.is_forgotten(BOB));
            assert_eq!(circles.made_by(&CircleOwner::Account(BOB)), 0);
            assert_eq!(circles.circles_of(BOB).count(), 0);
            assert_eq!(circles.watched_places().count(), 0);
        }
    }

    /// When this has to change, increment [`Circles::FORM`].
    #[test]
    fn the_form_is_the_one_of_its_version() {
        let mut history = history();
        let account_id = AccountId(3);
        history.add(4, Event::AccountForgotten(Forgotten { account_id }));
        let stored = stored(&Circles::fold(&history.0));
        insta::assert_snapshot!(format!("{} {stored:02x?}", Circles::FORM), @"1 [02, 06, 66, 61, 6d, 69, 6c, 79, 00, 01, 06, 73, 65, 61, 6c, 65, 64, 80, 9f, 8c, b0, 0d, 00, 02, 01, 01, 80, 9f, 8c, b0, 0d, 00, 00, 02, 01, f8, 9f, 8c, b0, 0d, 00, 00, 00, 01, 04, 68, 6f, 6d, 65, 04, 68, 6f, 6d, 65, 02, 06, 73, 65, 61, 6c, 65, 64, f0, a0, 8c, b0, 0d, 00, 06, 04, 62, 6f, 62, 73, 00, 02, 06, 73, 65, 61, 6c, 65, 64, 80, 9f, 8c, b0, 0d, 00, 01, 02, 01, 80, 9f, 8c, b0, 0d, 00, 00, 00, 00, 04, 01, 02, 01, e8, a1, 8c, b0, 0d, 00, 01, b8, a7, 8c, b0, 0d, 00, 07, 01, 03, 00]");
    }
}
