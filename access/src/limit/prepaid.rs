//! Checks paid for ahead. A counter that is asked often asks the database for the rest of the
//! second at once, and what comes in it needs no round trip; pure, with time passed in.
//!
//! What is paid for counts as used from then on, so no window ever holds more than its quota; it
//! can be spent only while the database's time is in the second under which it counts, so it
//! never counts for too short. What is left then is given back.

use std::time::Duration;

use tokio::time::Instant;

use super::use_of::{Late, Standing, second_of};

/// A counter is asked often with so many checks in a second.
const OFTEN: u64 = 4;
/// At most this share of what is left is paid for ahead: who comes close to the quota pays each
/// check by itself, so that nobody is refused for what another process then gives back.
const SHARE: u64 = 64;

/// How many checks come in a second.
#[derive(Debug)]
pub(super) struct Pace {
    since: Instant,
    count: u64,
    before: u64,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            since: now,
            count: 0,
            before: 0,
        }
    }

    /// Takes note of a check.
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

    /// How many checks to pay for ahead under `quota`, as a counter stood when it was last seen,
    /// so long ago.
    pub(super) fn ahead(
        &mut self,
        now: Instant,
        seen: &Standing,
        ago: Duration,
        quota: u64,
    ) -> u64 {
        self.turn(now);
        let lately = self.before.max(self.count);
        if lately < OFTEN {
            return 0;
        }
        let rest_of_second = 1.0 - (seen.decided + ago.as_secs_f64()).fract();
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checks of a second are few, and more than none"
        )]
        let expected = (lately as f64 * rest_of_second) as u64;
        expected.min(quota.saturating_sub(seen.used) / SHARE)
    }
}

/// Checks that have been paid for and not come yet. Each costs 1.
#[derive(Debug)]
pub(super) struct Prepaid {
    left: u64,
    quota: u64,
    /// How the counter stood when they were paid for, they themselves included.
    standing: Standing,
    /// That was between these two moments.
    asked: Instant,
    answered: Instant,
}

impl Prepaid {
    pub(super) fn new(
        left: u64,
        quota: u64,
        standing: Standing,
        asked: Instant,
        answered: Instant,
    ) -> Self {
        Self {
            left,
            quota,
            standing,
            asked,
            answered,
        }
    }

    /// The second under which they count.
    fn second(&self) -> u64 {
        second_of(self.standing.decided)
    }

    /// Takes one, if there still is one; says how the counter stands after it.
    pub(super) fn spend(&mut self, now: Instant, quota: u64) -> Option<Standing> {
        let latest = self.standing.decided + (now - self.asked).as_secs_f64();
        if self.left == 0 || self.quota != quota || second_of(latest) != self.second() {
            return None;
        }
        self.left -= 1;
        Some(Standing {
            used: self.standing.used - self.left,
            decided: self.standing.decided + (now - self.answered).as_secs_f64(),
            ..self.standing
        })
    }

    /// Whether the second is over, by the database's time.
    pub(super) fn is_over(&self, database: f64) -> bool {
        second_of(database) > self.second()
    }

    /// What is to be given back.
    pub(super) fn unspent(self) -> Option<Late> {
        (self.left > 0).then(|| Late {
            second: self.second(),
            used: self.left,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: f64 = 1_800_000_000.0;

    fn standing(used: u64, after: f64) -> Standing {
        Standing {
            used,
            eases_at: 0,
            retry_at: None,
            decided: START + after,
        }
    }

    fn busy(checks: u64, now: Instant) -> Pace {
        let mut pace = Pace::new(now);
        for _ in 0..checks {
            pace.count(now);
        }
        pace
    }

    #[test]
    fn a_busy_counter_pays_for_the_rest_of_the_second() {
        let start = Instant::now();
        let later = start + Duration::from_secs(1);
        let ahead = |checks, after, quota| {
            let seen = standing(0, after);
            let mut pace = busy(checks, start);
            let at_once = pace.ahead(start, &seen, Duration::ZERO, quota);
            assert_eq!(pace.ahead(later, &seen, Duration::ZERO, quota), at_once);
            at_once
        };
        assert_eq!(ahead(100, 0.0, 1_000_000), 100);
        assert_eq!(ahead(100, 0.75, 1_000_000), 25);
        assert_eq!(ahead(OFTEN - 1, 0.0, 1_000_000), 0, "not busy");
        assert_eq!(ahead(100, 0.0, 640), 10, "a share of what is left");
        assert_eq!(ahead(100, 0.0, 63), 0, "close to the quota");
    }

    #[test]
    fn a_counter_that_was_busy_once_is_not_busy_for_ever() {
        let start = Instant::now();
        let mut pace = busy(100, start);
        let long_after = start + Duration::from_secs(2);
        let seen = standing(0, 0.0);
        assert_eq!(pace.ahead(long_after, &seen, Duration::ZERO, 1_000_000), 0);
    }

    proptest! {
        /// Whatever is spent has been paid for and counts under the second in which it is spent,
        /// wherever between question and answer the decision fell; the rest is given back.
        #[test]
        fn what_is_spent_counts_under_its_second(
            paid in 1..20_u64,
            into_second in 0.0..1.0_f64,
            round_trip in 0..100_u64,
            share in 0..=100_u64,
            waits in prop::collection::vec(0..200_u64, 1..30),
        ) {
            let asked = Instant::now();
            let answered = asked + Duration::from_millis(round_trip);
            let decided = asked + Duration::from_millis(round_trip * share / 100);
            let mut prepaid = Prepaid::new(paid, 100, standing(50, into_second), asked, answered);
            let (mut now, mut spent) = (answered, 0);
            for wait in waits {
                now += Duration::from_millis(wait);
                let database = START + into_second + (now - decided).as_secs_f64();
                if let Some(standing) = prepaid.spend(now, 100) {
                    spent += 1;
                    prop_assert!(database < START + 1.0);
                    prop_assert!(!prepaid.is_over(standing.decided));
                    prop_assert_eq!(standing.used, 50 - paid + spent);
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
        let mut prepaid = Prepaid::new(5, 100, standing(50, 0.0), now, now);
        assert!(prepaid.spend(now, 10).is_none());
        assert!(prepaid.spend(now, 100).is_some());
    }
}
