//! The times of the fixes that the log received lately from one person.

use std::collections::{HashSet, VecDeque};

use chrono::{DateTime, Utc};
use domain::location::{CLOCKS_APART, taken_since};

/// Most fixes kept, unless more than these were written in the last minutes.
const MOST_FIXES: usize = 2_048;

pub(super) struct KnownFixes {
    /// Everything that the log received since then is here.
    since: DateTime<Utc>,
    times: HashSet<DateTime<Utc>>,
    /// The same fixes in the order of the log.
    written: VecDeque<Written>,
}

struct Written {
    fix: DateTime<Utc>,
    at: DateTime<Utc>,
}

impl KnownFixes {
    /// None yet, of all that the log received since then.
    pub(super) fn new(since: DateTime<Utc>) -> Self {
        Self {
            since,
            times: HashSet::new(),
            written: VecDeque::new(),
        }
    }

    pub(super) fn reaches(&self, since: DateTime<Utc>) -> bool {
        self.since <= since
    }

    pub(super) fn has(&self, fix: DateTime<Utc>) -> bool {
        self.times.contains(&fix)
    }

    /// Notes a fix that follows all others in the log and was written at `at`, in place of the
    /// oldest ones if there are many.
    pub(super) fn note(&mut self, fix: DateTime<Utc>, at: DateTime<Utc>, now: DateTime<Utc>) {
        if !self.times.insert(fix) {
            return;
        }
        // What the log received since then is needed for every fix that was made just now: without
        // it, each update would have to read the log.
        let current = taken_since(now) - CLOCKS_APART;
        while self.written.len() >= MOST_FIXES
            && let Some(oldest) = self.written.front()
            && oldest.at < current
        {
            self.times.remove(&oldest.fix);
            // The log's own clock may have been ahead.
            self.since = self.since.max(oldest.at + CLOCKS_APART);
            self.written.pop_front();
        }
        self.written.push_back(Written { fix, at });
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
    }

    fn assert_bounded(known: &KnownFixes) {
        assert!(known.written.len() <= MOST_FIXES);
        assert_eq!(known.times.len(), known.written.len());
    }

    /// Of these fixes, one each second, every one is known or would be looked up in the log.
    fn assert_not_taken_for_unsent(known: &KnownFixes, seconds: i64) {
        for second in 0..seconds {
            let fix = at(second);
            assert!(
                known.has(fix) || !known.reaches(taken_since(fix)),
                "{second}"
            );
        }
        assert!(known.reaches(taken_since(at(seconds))));
    }

    #[test]
    fn what_is_dropped_is_not_taken_for_unsent() {
        let mut known = KnownFixes::new(at(-600));
        for second in 0..5_000 {
            known.note(at(second), at(second), at(second));
        }
        assert_bounded(&known);
        assert_not_taken_for_unsent(&known, 5_000);
    }

    #[test]
    fn a_long_past_that_is_read_at_once_is_not_held_whole() {
        let mut known = KnownFixes::new(at(-600));
        for second in 0..20_000 {
            known.note(at(second), at(second), at(20_000));
            assert_bounded(&known);
        }
        assert_not_taken_for_unsent(&known, 20_000);
    }

    #[test]
    fn current_fixes_need_no_read_however_many_come() {
        let made = |tenth: i64| at(0) + TimeDelta::milliseconds(100 * tenth);
        let mut known = KnownFixes::new(taken_since(made(0)));
        for tenth in 0..20_000 {
            let now = made(tenth);
            assert!(known.reaches(taken_since(now)), "{tenth}");
            known.note(now, now, now);
        }
        // Those of a quarter of an hour.
        assert!(known.written.len() < 9_100, "{}", known.written.len());
    }
}
