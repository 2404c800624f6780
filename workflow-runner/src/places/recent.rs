//! The newest positions as they come in, and which of them count.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use schemas::{AccountId, Event, Recorded};

/// A position that was newer than all before it of its person, when the log got it.
#[derive(Clone, Debug)]
pub(super) struct Fresh {
    pub(super) partition: u16,
    pub(super) recorded: Arc<Recorded>,
}

/// Positions by which crossings may still have to be told.
///
/// Which of them count follows from the log alone, so every process knows the same, whichever
/// tells the crossings.
#[derive(Debug, Default)]
pub(super) struct Recent {
    newest: HashMap<AccountId, DateTime<Utc>>,
    fixes: VecDeque<Fresh>,
    /// Positions up to here were considered before.
    began: u64,
    /// Positions up to here are considered, whoever's they are.
    considered: u64,
    head: u64,
}

impl Recent {
    /// What follows a sequence, up to which positions are considered, whoever's they are.
    pub(super) fn after(considered: u64) -> Self {
        Self {
            began: considered,
            considered,
            head: considered,
            ..Self::default()
        }
    }

    /// Whether it is not known what a person sent before.
    pub(super) fn lacks(&self, account: AccountId) -> bool {
        // Before the first position of all there is nothing to know.
        self.began > 0 && !self.newest.contains_key(&account)
    }

    /// Takes note of the newest fix that a person sent before those that are taken in, where it
    /// matters.
    pub(super) fn learn(&mut self, account: AccountId, before: Option<DateTime<Utc>>) {
        let before = before.unwrap_or(DateTime::<Utc>::MIN_UTC);
        self.newest.insert(account, before);
    }

    /// Takes in the next position in the order of the log. What its person sent before must be
    /// known, as far as it was not older.
    pub(super) fn take(&mut self, recorded: Recorded, partition_of: impl Fn(AccountId) -> u16) {
        let sequence = recorded.sequence;
        self.head = sequence;
        let Event::LocationUpdated(updated) = &recorded.event else {
            return;
        };
        let (account, at) = (updated.user_id, updated.recorded_at);
        let newest = self.newest.get(&account);
        if newest.is_some_and(|newest| at <= *newest) {
            return;
        }
        self.newest.insert(account, at);
        if sequence > self.considered {
            self.fixes.push_back(Fresh {
                partition: partition_of(account),
                recorded: Arc::new(recorded),
            });
        }
    }

    /// The sequence up to which positions were taken in.
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    /// Drops positions that have been considered in every partition.
    pub(super) fn drop_through(&mut self, considered: u64) {
        self.considered = self.considered.max(considered);
        while let Some(oldest) = self.fixes.front() {
            if oldest.recorded.sequence > self.considered {
                return;
            }
            self.fixes.pop_front();
        }
    }

    /// Those behind a sequence, in order.
    pub(super) fn behind(&self, after: u64) -> impl Iterator<Item = &Fresh> {
        let start = self
            .fixes
            .partition_point(|fresh| fresh.recorded.sequence <= after);
        self.fixes.range(start..)
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use schemas::location::Updated;
    use schemas::{AggregateType, Context, EventId, OrgId, Sealed, StreamId};
    use uuid::Uuid;

    use super::*;

    fn fix(sequence: u64, account: u64, second: i64) -> Recorded {
        Recorded {
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
        }
    }

    fn sequences(recent: &Recent, after: u64) -> Vec<u64> {
        let behind = recent.behind(after);
        behind.map(|fresh| fresh.recorded.sequence).collect()
    }

    #[test]
    fn late_fixes_do_not_count() {
        let mut recent = Recent::default();
        for (sequence, account, second) in [(1, 7, 5), (2, 7, 4), (3, 8, 1), (4, 7, 5), (5, 7, 6)] {
            recent.take(fix(sequence, account, second), |_| 0);
        }
        assert_eq!(sequences(&recent, 0), [1, 3, 5]);
        assert_eq!(sequences(&recent, 1), [3, 5]);
        assert_eq!(recent.head(), 5);
    }

    #[test]
    fn what_was_sent_before_makes_later_ones_late() {
        let mut recent = Recent::after(2);
        assert!(recent.lacks(AccountId(7)));
        let before = DateTime::UNIX_EPOCH + TimeDelta::seconds(9);
        recent.learn(AccountId(7), Some(before));
        assert!(!recent.lacks(AccountId(7)));
        for (sequence, second) in [(3, 8), (4, 10)] {
            recent.take(fix(sequence, 7, second), |_| 0);
        }
        assert_eq!(sequences(&recent, 0), [4]);
        recent.drop_through(4);
        assert!(sequences(&recent, 0).is_empty());
    }

    #[test]
    fn nothing_was_sent_before_the_first() {
        assert!(!Recent::after(0).lacks(AccountId(7)));
    }
}
