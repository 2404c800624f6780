//! The newest positions as they come in, and which of them count.
//!
//! Memory is bounded: positions still to be considered in bytes, beyond which none are taken from
//! the log until some have been. Of the times of persons' newest positions the last to arrive are
//! held; the others are looked up in the log again.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use schemas::{AccountId, Event, Recorded};

/// Approximate bytes of positions waiting to be considered, beyond which no more are taken.
const FIXES_BYTES: usize = 32 * 1024 * 1024;
/// Memory of a position besides its sealed data.
const FIX_BYTES: usize = 640;
/// Persons in a generation of known times of newest positions; the previous one is held too. Far
/// more than appear in one batch.
const GENERATION: usize = 100_000;
/// Approximate memory of a person there.
const PERSON_BYTES: usize = 64;

/// A position that was newer than all before it of its person, when the log received it.
#[derive(Clone, Debug)]
pub(super) struct Fresh {
    pub(super) partition: u16,
    pub(super) recorded: Arc<Recorded>,
}

/// The time of the newest fix of a person up to a sequence.
#[derive(Clone, Copy, Debug)]
struct LastFix {
    at: DateTime<Utc>,
    sequence: u64,
}

/// Positions of our partitions that may still lead to crossings.
///
/// Which of them count follows from the log alone, so every process knows the same, whichever
/// records the crossings.
#[derive(Debug)]
pub(super) struct Recent {
    young: HashMap<AccountId, LastFix>,
    old: HashMap<AccountId, LastFix>,
    /// Whether a person who is not known has sent nothing before.
    knows_all: bool,
    fixes: VecDeque<Fresh>,
    bytes: usize,
    head: u64,
}

impl Recent {
    /// Starts after a sequence.
    pub(super) fn after(sequence: u64) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            // Before the first position of all there is nothing to know.
            knows_all: sequence == 0,
            fixes: VecDeque::new(),
            bytes: 0,
            head: sequence,
        }
    }

    /// Starts over after an earlier sequence. What was known there stays known.
    pub(super) fn rewind(&mut self, sequence: u64) {
        let mut again = Self::after(sequence);
        let known = self.old.drain().chain(self.young.drain());
        again.old = known
            .filter(|(_, known)| known.sequence <= sequence)
            .collect();
        *self = again;
    }

    /// Keeps only our persons, whose positions alone were taken in; `more` if some were gained.
    pub(super) fn retain(&mut self, is_ours: impl Fn(AccountId) -> bool, more: bool) {
        self.young.retain(|account, _| is_ours(*account));
        self.old.retain(|account, _| is_ours(*account));
        self.knows_all &= !more || self.head == 0;
    }

    /// Whether a person's earlier fixes are unknown.
    pub(super) fn lacks(&self, account: AccountId) -> bool {
        !self.knows_all && self.newest(account).is_none()
    }

    fn newest(&self, account: AccountId) -> Option<DateTime<Utc>> {
        let known = self.young.get(&account).or_else(|| self.old.get(&account));
        known.map(|known| known.at)
    }

    /// Records the newest fix that a person sent before this sequence, as far as it matters for
    /// those that are taken in.
    pub(super) fn learn(&mut self, account: AccountId, before: Option<DateTime<Utc>>, at: u64) {
        let known = LastFix {
            at: before.unwrap_or(DateTime::<Utc>::MIN_UTC),
            sequence: at.saturating_sub(1),
        };
        self.remember(account, known);
    }

    fn remember(&mut self, account: AccountId, known: LastFix) {
        if self.young.len() >= GENERATION && !self.young.contains_key(&account) {
            self.knows_all &= self.old.is_empty();
            self.old = std::mem::take(&mut self.young);
        }
        self.old.remove(&account);
        self.young.insert(account, known);
    }

    /// Takes in the next position in log order, of a person of ours; `partition` is theirs if it is
    /// still to be considered. Their earlier fixes must be known, as far as they were not older.
    pub(super) fn take(&mut self, recorded: Arc<Recorded>, partition: Option<u16>) {
        let sequence = recorded.sequence;
        let Event::LocationUpdated(updated) = &recorded.event else {
            return;
        };
        let (account, at) = (updated.user_id, updated.recorded_at);
        if self.newest(account).is_some_and(|newest| at <= newest) {
            return;
        }
        self.remember(account, LastFix { at, sequence });
        if let Some(partition) = partition {
            let fresh = Fresh {
                partition,
                recorded,
            };
            self.bytes += fresh.bytes();
            self.fixes.push_back(fresh);
        }
    }

    /// Positions up to here were taken in.
    pub(super) fn reached(&mut self, sequence: u64) {
        self.head = self.head.max(sequence);
    }

    /// The sequence up to which positions were taken in.
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    /// Whether some must be considered before more are taken in.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= FIXES_BYTES
    }

    /// Approximate memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes + (self.young.len() + self.old.len()) * PERSON_BYTES
    }

    /// Drops positions that no longer have to be considered.
    pub(super) fn drop_unless(&mut self, is_due: impl Fn(&Fresh) -> bool) {
        while let Some(oldest) = self.fixes.pop_front() {
            if is_due(&oldest) {
                return self.fixes.push_front(oldest);
            }
            self.bytes -= oldest.bytes();
        }
    }

    /// Those after a sequence, in order.
    pub(super) fn behind(&self, after: u64) -> impl Iterator<Item = &Fresh> {
        let start = self
            .fixes
            .partition_point(|fresh| fresh.recorded.sequence <= after);
        self.fixes.range(start..)
    }
}

impl Fresh {
    fn bytes(&self) -> usize {
        match &self.recorded.event {
            Event::LocationUpdated(updated) => FIX_BYTES + updated.sealed.ciphertext().len(),
            _ => FIX_BYTES,
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use schemas::location::Updated;
    use schemas::{AggregateType, Context, EventId, OrgId, Sealed, StreamId};
    use uuid::Uuid;

    use super::*;

    fn fix(sequence: u64, account: u64, second: i64) -> Arc<Recorded> {
        Arc::new(Recorded {
            sequence,
            stream: StreamId::new(&OrgId::from("_"), AggregateType::Track, "7"),
            id: EventId(Uuid::nil()),
            time: DateTime::UNIX_EPOCH,
            event: Event::LocationUpdated(Updated {
                user_id: AccountId(account),
                recorded_at: DateTime::UNIX_EPOCH + TimeDelta::seconds(second),
                sealed: Sealed::from_ciphertext(String::new()),
            }),
            context: Context::default(),
            receipt: None,
        })
    }

    fn sequences(recent: &Recent, after: u64) -> Vec<u64> {
        let behind = recent.behind(after);
        behind.map(|fresh| fresh.recorded.sequence).collect()
    }

    #[test]
    fn late_fixes_do_not_count() {
        let mut recent = Recent::after(0);
        for (sequence, account, second) in [(1, 7, 5), (2, 7, 4), (3, 8, 1), (4, 7, 5), (5, 7, 6)] {
            recent.take(fix(sequence, account, second), Some(0));
        }
        recent.reached(6);
        assert_eq!(sequences(&recent, 0), [1, 3, 5]);
        assert_eq!(sequences(&recent, 1), [3, 5]);
        assert_eq!(recent.head(), 6);
    }

    #[test]
    fn what_was_sent_before_makes_later_ones_late() {
        let mut recent = Recent::after(2);
        assert!(recent.lacks(AccountId(7)));
        let before = DateTime::UNIX_EPOCH + TimeDelta::seconds(9);
        recent.learn(AccountId(7), Some(before), 3);
        assert!(!recent.lacks(AccountId(7)));
        for (sequence, second) in [(3, 8), (4, 10)] {
            recent.take(fix(sequence, 7, second), Some(0));
        }
        assert_eq!(sequences(&recent, 0), [4]);
        recent.drop_unless(|fresh| fresh.recorded.sequence > 4);
        assert!(sequences(&recent, 0).is_empty());
    }

    #[test]
    fn nothing_was_sent_before_the_first() {
        assert!(!Recent::after(0).lacks(AccountId(7)));
    }

    #[test]
    fn what_is_considered_already_is_not_held_but_makes_others_late() {
        let mut recent = Recent::after(0);
        recent.take(fix(1, 7, 5), None);
        recent.take(fix(2, 7, 4), Some(0));
        recent.take(fix(3, 7, 6), Some(0));
        assert_eq!(sequences(&recent, 0), [3]);
    }

    #[test]
    fn from_an_earlier_place_on_the_same_ones_count() {
        let mut recent = Recent::after(0);
        let all = [(1, 7, 5), (2, 8, 1), (3, 7, 9), (4, 7, 8), (5, 9, 2)];
        for (sequence, account, second) in all {
            recent.take(fix(sequence, account, second), Some(0));
        }
        recent.reached(5);
        recent.rewind(2);
        assert_eq!((recent.head(), recent.fixes.len(), recent.bytes), (2, 0, 0));
        // The last known fixes of 7 and 9 came after that sequence.
        assert!(recent.lacks(AccountId(7)) && recent.lacks(AccountId(9)));
        assert!(!recent.lacks(AccountId(8)));
        let before = DateTime::UNIX_EPOCH + TimeDelta::seconds(5);
        recent.learn(AccountId(7), Some(before), 3);
        recent.learn(AccountId(9), None, 3);
        for (sequence, account, second) in &all[2..] {
            recent.take(fix(*sequence, *account, *second), Some(0));
        }
        assert_eq!(sequences(&recent, 0), [3, 5]);
    }

    #[test]
    fn what_others_have_seen_to_meanwhile_is_not_known() {
        let mut recent = Recent::after(0);
        recent.take(fix(1, 7, 5), Some(0));
        recent.take(fix(2, 8, 5), Some(1));
        recent.reached(2);
        recent.retain(|account| account == AccountId(8), false);
        recent.retain(|_| true, true);
        assert!(recent.lacks(AccountId(7)) && !recent.lacks(AccountId(8)));
    }

    #[test]
    fn what_is_held_is_bounded() {
        let mut recent = Recent::after(0);
        for person in 1..=2 * GENERATION as u64 {
            recent.take(fix(person, person, 1), None);
        }
        assert!(!recent.lacks(AccountId(1)), "all are held");
        for person in 1..=GENERATION as u64 {
            let person = 2 * GENERATION as u64 + person;
            recent.take(fix(person, person, 1), None);
        }
        assert!(recent.lacks(AccountId(1)) && !recent.lacks(AccountId(250_000)));
        assert!(recent.bytes() <= 2 * GENERATION * PERSON_BYTES);
        let mut sequence = recent.head();
        while !recent.is_full() {
            sequence += 1;
            recent.take(
                fix(sequence, 1, i64::try_from(sequence).unwrap() + 9),
                Some(0),
            );
        }
        assert!(recent.fixes.len() * FIX_BYTES <= FIXES_BYTES + FIX_BYTES);
        recent.drop_unless(|_| false);
        assert!(!recent.is_full());
    }
}
