//! Prepaid checks. A busy counter asks the database for the next seconds at once, and checks in
//! them need no round trip. Pure, with time passed in.
//!
//! Prepaid checks count as used from then on, under the last second in which they can be spent, so
//! no window ever holds more than its quota. What is left then is given back.

use std::time::Duration;

use tokio::time::Instant;

use super::use_of::{CounterSnapshot, Late, Window, second_of};

/// A counter with this many checks in a second is busy.
const OFTEN: u64 = 2;
/// At most this share of what is left is prepaid: a caller close to the quota pays for each check
/// separately, so that no caller is refused because of what another process then gives back.
const SHARE: u64 = 64;

/// Checks prepaid along with waiting ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ahead {
    /// Checks that have not come yet.
    pub(super) checks: u64,
    /// Whole seconds after the current one in which they may come as well.
    pub(super) seconds: u64,
}

/// Measures the checks per second.
#[derive(Debug)]
pub(super) struct CheckRate {
    since: Instant,
    count: u64,
    before: u64,
}

impl CheckRate {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            since: now,
            count: 0,
            before: 0,
        }
    }

    /// Counts a check.
    pub(super) fn count(&mut self, now: Instant) {
        self.turn(now);
        self.count += 1;
    }

    fn turn(&mut self, now: Instant) {
        let gone = now.saturating_duration_since(self.since);
        if gone < Duration::from_secs(1) {
            return;
        }
        let followed = gone < Duration::from_secs(2);
        self.before = if followed { self.count } else { 0 };
        (self.since, self.count) = (now, 0);
    }

    /// What to prepay under `quota`, given a counter's state when it was last seen, `ago` before
    /// now.
    pub(super) fn ahead(
        &mut self,
        now: Instant,
        seen: &CounterSnapshot,
        ago: Duration,
        quota: u64,
        window: Window,
    ) -> Ahead {
        self.turn(now);
        let lately = self.before.max(self.count);
        if lately < OFTEN {
            return Ahead::default();
        }
        let seconds = window.ahead();
        let rest_of_second = 1.0 - (seen.decided + ago.as_secs_f64()).fract();
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checks of some seconds are few, and more than none"
        )]
        let expected = (lately as f64 * (rest_of_second + seconds as f64)) as u64;
        let checks = expected.min(quota.saturating_sub(seen.used) / SHARE);
        // Without prepaid checks there is no reason to count under a later second.
        let seconds = if checks > 0 { seconds } else { 0 };
        Ahead { checks, seconds }
    }
}

/// Checks that have been paid for and not come yet. Each costs 1.
#[derive(Debug)]
pub(super) struct Prepaid {
    pub(super) left: u64,
    /// The second under which they count: the last in which they can be spent.
    pub(super) second: u64,
    pub(super) quota: u64,
    /// The state of the counter when they were paid for, including them.
    pub(super) snapshot: CounterSnapshot,
    /// They were paid for between these two moments.
    pub(super) asked: Instant,
    pub(super) answered: Instant,
}

impl Prepaid {
    /// Takes one if any is left. Returns the state of the counter after it.
    pub(super) fn spend(&mut self, now: Instant, quota: u64) -> Option<CounterSnapshot> {
        let latest = self.snapshot.decided + (now - self.asked).as_secs_f64();
        if self.left == 0 || self.quota != quota || second_of(latest) > self.second {
            return None;
        }
        self.left -= 1;
        Some(CounterSnapshot {
            used: self.snapshot.used - self.left,
            decided: self.snapshot.decided + (now - self.answered).as_secs_f64(),
            ..self.snapshot
        })
    }

    /// Whether their time is over, by the database's clock.
    pub(super) fn is_over(&self, database: f64) -> bool {
        second_of(database) > self.second
    }

    /// Returns what has to be given back.
    pub(super) fn unspent(self) -> Option<Late> {
        (self.left > 0).then_some(Late {
            second: self.second,
            used: self.left,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: f64 = 1_800_000_000.0;

    const HOUR: Window = Window {
        span: 3_600,
        fixed: false,
    };
    const MINUTE: Window = Window {
        span: 60,
        fixed: true,
    };

    fn snapshot(used: u64, after: f64) -> CounterSnapshot {
        CounterSnapshot::of(used, START + after)
    }

    /// `left` checks of a quota of 100, for the second of the decision and `ahead` seconds after
    /// it.
    fn prepaid(
        left: u64,
        ahead: u64,
        into_second: f64,
        asked: Instant,
        answered: Instant,
    ) -> Prepaid {
        let snapshot = snapshot(50, into_second);
        Prepaid {
            left,
            second: second_of(snapshot.decided) + ahead,
            quota: 100,
            snapshot,
            asked,
            answered,
        }
    }

    fn busy(checks: u64, now: Instant) -> CheckRate {
        let mut rate = CheckRate::new(now);
        for _ in 0..checks {
            rate.count(now);
        }
        rate
    }

    #[test]
    fn a_busy_counter_pays_for_the_next_seconds() {
        let start = Instant::now();
        let later = start + Duration::from_secs(1);
        let ahead = |checks, after, quota, window| {
            let seen = snapshot(0, after);
            let mut rate = busy(checks, start);
            let mut ahead = |now| rate.ahead(now, &seen, Duration::ZERO, quota, window);
            let at_once = ahead(start);
            assert_eq!(ahead(later), at_once);
            (at_once.checks, at_once.seconds)
        };
        assert_eq!(ahead(100, 0.0, 1_000_000, HOUR), (400, 3));
        assert_eq!(ahead(100, 0.75, 1_000_000, HOUR), (325, 3));
        assert_eq!(ahead(100, 0.75, 1_000_000, MINUTE), (25, 0));
        assert_eq!(ahead(OFTEN - 1, 0.0, 1_000_000, HOUR), (0, 0), "not busy");
        assert_eq!(ahead(100, 0.0, 640, HOUR), (10, 3), "a share of the rest");
        assert_eq!(ahead(100, 0.0, 63, HOUR), (0, 0), "close to the quota");
    }

    #[test]
    fn a_counter_that_was_busy_once_is_not_busy_for_ever() {
        let start = Instant::now();
        let mut rate = busy(100, start);
        let long_after = start + Duration::from_secs(2);
        let seen = snapshot(0, 0.0);
        let ahead = rate.ahead(long_after, &seen, Duration::ZERO, 1_000_000, HOUR);
        assert_eq!(ahead, Ahead::default());
    }

    proptest! {
        /// Every spent check has been paid for and counts under no second before the one in which
        /// it is spent, wherever between request and response the decision fell. The rest is given
        /// back.
        #[test]
        fn what_is_spent_never_counts_for_too_short(
            paid in 1..20_u64,
            ahead in 0..4_u32,
            into_second in 0.0..1.0_f64,
            round_trip in 0..100_u64,
            share in 0..=100_u64,
            waits in prop::collection::vec(0..600_u64, 1..30),
        ) {
            let asked = Instant::now();
            let answered = asked + Duration::from_millis(round_trip);
            let decided = asked + Duration::from_millis(round_trip * share / 100);
            let mut prepaid = prepaid(paid, u64::from(ahead), into_second, asked, answered);
            let (mut now, mut spent) = (answered, 0);
            for wait in waits {
                now += Duration::from_millis(wait);
                let database = START + into_second + (now - decided).as_secs_f64();
                if let Some(snapshot) = prepaid.spend(now, 100) {
                    spent += 1;
                    prop_assert!(database < START + 1.0 + f64::from(ahead));
                    prop_assert!(!prepaid.is_over(snapshot.decided));
                    prop_assert_eq!(snapshot.used, 50 - paid + spent);
                }
            }
            prop_assert!(spent <= paid);
            let unspent = prepaid.unspent().map_or(0, |late| late.used);
            prop_assert_eq!(spent + unspent, paid);
        }
    }

    #[test]
    fn a_quota_that_has_changed_is_not_prepaid() {
        let now = Instant::now();
        let mut prepaid = prepaid(5, 0, 0.0, now, now);
        assert!(prepaid.spend(now, 10).is_none());
        assert!(prepaid.spend(now, 100).is_some());
    }
}
