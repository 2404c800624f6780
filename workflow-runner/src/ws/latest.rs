//! The newest position of each person somebody has asked for, kept up by the log's tail.

use std::collections::HashMap;
use std::sync::Arc;

use domain::circles::Circles;
use schemas::location::Updated;
use schemas::{AccountId, Event, Recorded};

use crate::people::Newest;

/// The newest positions of persons.
#[derive(Debug, Default)]
pub(super) struct Latest {
    persons: HashMap<AccountId, Known>,
}

/// What is known of a person.
#[derive(Debug, Default)]
struct Known {
    newest: Option<Newest>,
    /// Whether what stood in the log before is in here.
    is_whole: bool,
}

impl Known {
    fn take(&mut self, news: Newest) {
        match &mut self.newest {
            Some(newest) => newest.take(news),
            None => self.newest = Some(news),
        }
    }
}

impl Latest {
    /// Those of the persons whose past is to be read first. From now on no fix of theirs that the
    /// tail brings is missed.
    pub(super) fn lacking(&mut self, persons: impl Iterator<Item = AccountId>) -> Vec<AccountId> {
        persons
            .filter(|account| !self.persons.entry(*account).or_default().is_whole)
            .collect()
    }

    /// Takes in what was read of a person's past.
    pub(super) fn learn(&mut self, account: AccountId, past: Option<Newest>) {
        let known = self.persons.entry(account).or_default();
        known.is_whole = true;
        if let Some(past) = past {
            known.take(past);
        }
    }

    /// Takes in a fix, where its person was asked for and has not been forgotten.
    pub(super) fn take_judged(&mut self, recorded: &Recorded, circles: &Circles) {
        let Event::LocationUpdated(updated) = &recorded.event else {
            return;
        };
        let Some(known) = self.persons.get_mut(&updated.user_id) else {
            return;
        };
        if !circles.is_forgotten(updated.user_id) {
            let hidden = circles.hid(updated.user_id, updated.recorded_at);
            known.take(Newest::of(Arc::new(updated.clone()), hidden));
        }
    }

    /// A person's newest position for their own eyes, or for those of others.
    pub(super) fn of(&self, account: AccountId, own: bool) -> Option<Arc<Updated>> {
        let newest = self.persons.get(&account)?.newest.as_ref()?;
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

    fn updated(second: i64) -> Updated {
        Updated {
            user_id: ANNA,
            recorded_at: DateTime::UNIX_EPOCH + TimeDelta::seconds(second),
            sealed: Sealed::from_ciphertext(String::new()),
        }
    }

    fn recorded(second: i64) -> Recorded {
        Recorded {
            sequence: 1,
            stream: StreamId::new(&OrgId::from("_"), AggregateType::Track, "7"),
            id: EventId(Uuid::nil()),
            time: DateTime::UNIX_EPOCH,
            event: Event::LocationUpdated(updated(second)),
            context: Context::default(),
            receipt: None,
        }
    }

    fn second(latest: &Latest) -> Option<i64> {
        Some(latest.of(ANNA, true)?.recorded_at.timestamp())
    }

    #[test]
    fn what_comes_while_the_past_is_read_is_not_missed() {
        let mut latest = Latest::default();
        latest.take_judged(&recorded(3), &Circles::default());
        assert_eq!(second(&latest), None, "nobody asked");
        assert_eq!(latest.lacking([ANNA].into_iter()), [ANNA]);
        latest.take_judged(&recorded(9), &Circles::default());
        assert_eq!(latest.lacking([ANNA].into_iter()), [ANNA]);
        latest.learn(ANNA, Some(Newest::of(Arc::new(updated(5)), false)));
        assert_eq!(second(&latest), Some(9));
        assert!(latest.lacking([ANNA].into_iter()).is_empty());
        latest.forget(ANNA);
        assert_eq!(second(&latest), None);
    }
}
