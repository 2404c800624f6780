//! A rest after each batch on a busy machine, so that the next batch has more events.
//!
//! Writing one event takes about as long as writing a hundred, for the projector and for Postgres.
//! Where others need the processors too, fewer and larger transactions give everyone more of them,
//! including the clients that wait for their rows. On an idle machine nothing rests.

use std::time::{Duration, Instant};

use crate::writers::LARGE;

/// A batch that takes this many times as long as a quick one has waited for others.
const WAITED: u32 = 4;
/// The longest rest.
const MOST: Duration = Duration::from_millis(50);
/// The quickest duration on record doubles within this time.
const FORGETTING: Duration = Duration::from_mins(1);

/// How long the batches of one log take.
#[derive(Debug, Default)]
pub(crate) struct BatchPause {
    quickest: Option<(Instant, Duration)>,
}

impl BatchPause {
    /// How long to rest after a batch of this many events that took this long until `now`: as long
    /// as it waited for others.
    pub(crate) fn after(&mut self, events: usize, took: Duration, now: Instant) -> Duration {
        let quickest = self.quickest.map_or(took, |(at, quickest)| {
            let passed = now.duration_since(at).as_secs_f64() / FORGETTING.as_secs_f64();
            took.min(quickest.mul_f64(passed.min(10.0).exp2()))
        });
        self.quickest = Some((now, quickest));
        // Large batches follow each other without a rest.
        if events >= LARGE {
            return Duration::ZERO;
        }
        took.saturating_sub(quickest * WAITED).min(MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn no_rest_follows_a_batch_that_is_as_quick_as_ever() {
        let now = Instant::now();
        let mut pause = BatchPause::default();
        for took in [2, 3, 8, 2] {
            assert_eq!(pause.after(10, MS * took, now), Duration::ZERO);
        }
    }

    #[test]
    fn a_rest_is_as_long_as_its_batch_waited_for_others() {
        let now = Instant::now();
        let mut pause = BatchPause::default();
        pause.after(1, MS * 2, now);
        assert_eq!(pause.after(10, MS * 20, now), MS * 12);
        assert_eq!(pause.after(10, MS * 500, now), MOST);
        assert_eq!(pause.after(LARGE, MS * 500, now), Duration::ZERO);
    }

    #[test]
    fn a_machine_that_became_slow_is_taken_for_what_it_is_in_the_end() {
        let start = Instant::now();
        let mut pause = BatchPause::default();
        pause.after(1, MS * 2, start);
        let later = |minutes| start + FORGETTING * minutes;
        assert_eq!(pause.after(1, MS * 20, later(1)), MS * 4);
        assert_eq!(pause.after(1, MS * 20, later(2)), Duration::ZERO);
        // The first quick batch makes it known again.
        pause.after(1, MS * 2, later(3));
        assert_eq!(pause.after(1, MS * 20, later(3)), MS * 12);
        assert_eq!(pause.after(1, MS * 20, later(10_000)), Duration::ZERO);
    }
}
