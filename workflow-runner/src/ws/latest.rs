//! The newest position of each person, folded from the log.

use std::collections::HashMap;
use std::sync::Arc;

use domain::circles::Circles;
use schemas::location::Updated;
use schemas::{AccountId, Event, Recorded};

/// The newest position of each person. A late fix never takes the place of a newer one.
#[derive(Debug, Default)]
pub(super) struct Latest {
    persons: HashMap<AccountId, Newest>,
}

#[derive(Debug)]
struct Newest {
    /// For the person's own eyes.
    own: Arc<Updated>,
    /// The newest that was not made while hiding, which others may see.
    shown: Option<Arc<Updated>>,
}

impl Latest {
    /// Takes in a fix of a person who has not been forgotten.
    pub(super) fn take_judged(&mut self, recorded: &Recorded, circles: &Circles) {
        if let Event::LocationUpdated(updated) = &recorded.event
            && !circles.is_forgotten(updated.user_id)
        {
            self.take(recorded, circles.hid(updated.user_id, updated.recorded_at));
        }
    }

    /// Takes in a fix; `hidden` says whether it was made while its person was hiding.
    fn take(&mut self, recorded: &Recorded, hidden: bool) {
        let Event::LocationUpdated(updated) = &recorded.event else {
            return;
        };
        let fix = Arc::new(updated.clone());
        let is_newer = |than: &Arc<Updated>| fix.recorded_at > than.recorded_at;
        let shown = (!hidden).then(|| fix.clone());
        match self.persons.get_mut(&updated.user_id) {
            None => {
                let own = fix;
                self.persons.insert(updated.user_id, Newest { own, shown });
            }
            Some(newest) => {
                if newest.shown.as_ref().is_none_or(&is_newer) {
                    newest.shown = shown.or(newest.shown.take());
                }
                if is_newer(&newest.own) {
                    newest.own = fix;
                }
            }
        }
    }

    /// A person's newest position for their own eyes, or for those of others.
    pub(super) fn of(&self, account: AccountId, own: bool) -> Option<Arc<Updated>> {
        let newest = self.persons.get(&account)?;
        if own {
            Some(newest.own.clone())
        } else {
            newest.shown.clone()
        }
    }

    /// Drops what is known of a person.
    pub(super) fn forget(&mut self, account: AccountId) {
        self.persons.remove(&account);
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta};
    use schemas::{AggregateType, Context, EventId, OrgId, Sealed, StreamId};
    use uuid::Uuid;

    use super::*;

    const ANNA: AccountId = AccountId(7);

    fn fix(second: i64) -> Recorded {
        Recorded {
            sequence: 1,
            stream: StreamId::new(&OrgId::from("_"), AggregateType::Track, "7"),
            id: EventId(Uuid::nil()),
            time: DateTime::UNIX_EPOCH,
            event: Event::LocationUpdated(Updated {
                user_id: ANNA,
                recorded_at: DateTime::UNIX_EPOCH + TimeDelta::seconds(second),
                sealed: Sealed::from_ciphertext(String::new()),
            }),
            context: Context::default(),
            receipt: None,
        }
    }

    fn second(latest: &Latest, own: bool) -> Option<i64> {
        let fix = latest.of(ANNA, own)?;
        Some(fix.recorded_at.timestamp())
    }

    #[test]
    fn a_late_fix_changes_nothing() {
        let mut latest = Latest::default();
        for at in [5, 9, 7] {
            latest.take(&fix(at), false);
        }
        assert_eq!(second(&latest, false), Some(9));
        assert_eq!(second(&latest, true), Some(9));
    }

    #[test]
    fn others_see_the_newest_from_outside_of_hiding() {
        let mut latest = Latest::default();
        latest.take(&fix(4), true);
        assert_eq!(second(&latest, false), None);
        latest.take(&fix(5), false);
        latest.take(&fix(8), true);
        assert_eq!(second(&latest, true), Some(8));
        assert_eq!(second(&latest, false), Some(5));
        latest.take(&fix(6), false);
        assert_eq!(second(&latest, false), Some(6));
        latest.forget(ANNA);
        assert_eq!(second(&latest, true), None);
    }
}
