//! The newest position of each person somebody has asked for, kept current by the log's tail.
//!
//! The persons least recently asked for are dropped when there is too much: the next request reads
//! them from the log again.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use domain::circles::Circles;
use schemas::location::Updated;
use schemas::{AccountId, Event, Recorded};

use crate::people::Newest;

/// The newest positions of persons.
#[derive(Debug)]
pub(super) struct Latest {
    persons: HashMap<AccountId, Tracked>,
    /// The same by when they were last asked for.
    by_asking: BTreeSet<(Asking, AccountId)>,
    /// Unanswered requests: no person they asked for is dropped meanwhile.
    under_way: BTreeSet<Asking>,
    last: Asking,
    bytes: usize,
    max_bytes: usize,
}

/// A request, by its order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Asking(u64);

/// The known positions of a person.
#[derive(Debug, Default)]
struct Tracked {
    newest: Option<Newest>,
    /// Whether earlier positions in the log are included.
    is_whole: bool,
    asked: Asking,
}

impl Tracked {
    fn take(&mut self, news: Newest) {
        match &mut self.newest {
            Some(newest) => newest.take(news),
            None => self.newest = Some(news),
        }
    }

    /// Approximate memory, including its entries in both indexes.
    fn bytes(&self) -> usize {
        let of = |fix: &Arc<Updated>| size_of::<Updated>() + fix.sealed.ciphertext().len();
        let newest = self.newest.as_ref().map_or(0, |newest| {
            let shown = newest.shown.as_ref();
            let another = shown.filter(|shown| !Arc::ptr_eq(shown, &newest.own));
            of(&newest.own) + another.map_or(0, of)
        });
        let places = size_of::<(AccountId, Self)>() + size_of::<(Asking, AccountId)>();
        newest + 2 * places
    }
}

impl Latest {
    /// Creates an empty set that will hold at most about `max_bytes`.
    pub(super) fn within(max_bytes: usize) -> Self {
        Self {
            persons: HashMap::new(),
            by_asking: BTreeSet::new(),
            under_way: BTreeSet::new(),
            last: Asking::default(),
            bytes: 0,
            max_bytes,
        }
    }

    /// Starts a request. Until it is [`Self::answered`], nothing of what it asks for is dropped.
    pub(super) fn ask(&mut self) -> Asking {
        self.last.0 += 1;
        self.under_way.insert(self.last);
        self.last
    }

    /// Ends a request, and drops what is too much.
    pub(super) fn answered(&mut self, asking: Asking) {
        self.under_way.remove(&asking);
        let until = self.under_way.first().copied();
        while self.bytes > self.max_bytes
            && let Some((asked, account)) = self.by_asking.first().copied()
            && until.is_none_or(|until| asked < until)
        {
            self.forget(account);
            metrics::counter!("waypost_ws_latest_dropped_total").increment(1);
        }
        self.tell();
    }

    /// Those of the persons whose past must be read first. From now on no fix of theirs that the
    /// tail delivers is missed.
    pub(super) fn lacking(
        &mut self,
        asking: Asking,
        persons: impl Iterator<Item = AccountId>,
    ) -> Vec<AccountId> {
        persons
            .filter(|account| {
                let is_new = !self.persons.contains_key(account);
                let known = self.persons.entry(*account).or_default();
                self.bytes += if is_new { known.bytes() } else { 0 };
                self.by_asking.remove(&(known.asked, *account));
                known.asked = known.asked.max(asking);
                self.by_asking.insert((known.asked, *account));
                !known.is_whole
            })
            .collect()
    }

    /// Takes in what was read of a person's past. A person who was forgotten meanwhile is asked for
    /// again.
    pub(super) fn learn(&mut self, account: AccountId, past: Option<Newest>) {
        self.change(account, |known| {
            known.is_whole = true;
            if let Some(past) = past {
                known.take(past);
            }
        });
    }

    /// Takes in a fix, if its person was asked for and has not been forgotten.
    pub(super) fn take_judged(&mut self, recorded: &Recorded, circles: &Circles) {
        let Event::LocationUpdated(updated) = &recorded.event else {
            return;
        };
        if !circles.is_forgotten(updated.user_id) {
            self.change(updated.user_id, |known| {
                let hidden = circles.hid(updated.user_id, updated.recorded_at);
                known.take(Newest::of(Arc::new(updated.clone()), hidden));
            });
        }
    }

    /// A person's newest position, for themselves or for others.
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
        if let Some(known) = self.persons.remove(&account) {
            self.bytes -= known.bytes();
            self.by_asking.remove(&(known.asked, account));
        }
    }

    fn change(&mut self, account: AccountId, change: impl FnOnce(&mut Tracked)) {
        if let Some(known) = self.persons.get_mut(&account) {
            self.bytes -= known.bytes();
            change(known);
            self.bytes += known.bytes();
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a figure of metrics")]
    fn tell(&self) {
        metrics::gauge!("waypost_ws_latest_bytes").set(self.bytes as f64);
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
        let mut latest = Latest::within(usize::MAX);
        latest.take_judged(&recorded(3), &Circles::default());
        assert_eq!(second(&latest), None, "nobody asked");
        let asking = latest.ask();
        assert_eq!(latest.lacking(asking, [ANNA].into_iter()), [ANNA]);
        latest.take_judged(&recorded(9), &Circles::default());
        assert_eq!(latest.lacking(asking, [ANNA].into_iter()), [ANNA]);
        latest.learn(ANNA, Some(Newest::of(Arc::new(updated(5)), false)));
        assert_eq!(second(&latest), Some(9));
        assert!(latest.lacking(asking, [ANNA].into_iter()).is_empty());
        latest.forget(ANNA);
        assert_eq!(second(&latest), None);
        latest.answered(asking);
        assert_eq!(latest.bytes, 0);
    }

    fn newest() -> Newest {
        Newest::of(Arc::new(updated(1)), false)
    }

    #[test]
    fn what_was_asked_for_longest_ago_is_dropped_and_asked_for_again() {
        let mut latest = Latest::within(0);
        let asking = latest.ask();
        let everybody = || (1..=100).map(AccountId);
        assert_eq!(latest.lacking(asking, everybody()).len(), 100);
        for account in everybody() {
            latest.learn(account, Some(newest()));
        }
        assert!(latest.lacking(asking, everybody()).is_empty());
        latest.max_bytes = latest.bytes / 2;
        let another = latest.ask();
        assert!(latest.lacking(another, (1..=10).map(AccountId)).is_empty());
        latest.answered(asking);
        assert!(latest.bytes <= latest.max_bytes);
        assert!(latest.lacking(another, (1..=10).map(AccountId)).is_empty());
        let lacking = latest.lacking(another, everybody());
        assert_eq!(lacking, (11..=60).map(AccountId).collect::<Vec<_>>());
        latest.answered(another);
        assert_eq!(latest.persons.len(), latest.by_asking.len());
        assert!(latest.bytes <= latest.max_bytes);
    }

    #[test]
    fn nobody_is_dropped_while_somebody_waits_for_them() {
        let mut latest = Latest::within(0);
        let (first, second) = (latest.ask(), latest.ask());
        latest.lacking(first, [ANNA].into_iter());
        latest.answered(second);
        latest.learn(ANNA, Some(newest()));
        assert!(latest.lacking(first, [ANNA].into_iter()).is_empty());
        latest.answered(first);
        assert!(latest.persons.is_empty());
    }
}
