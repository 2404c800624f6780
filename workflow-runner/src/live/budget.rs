//! Limits what a client may ask of one connection.

use tokio::time::Instant;

const BURST: f64 = 60.0;
const REFILL_PER_SECOND: f64 = 6.0;
const MALFORMED_COST: f64 = 6.0;

/// A budget of frames that refills with time.
#[derive(Debug)]
pub(super) struct Budget {
    left: f64,
    since: Instant,
}

impl Budget {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            left: BURST,
            since: now,
        }
    }

    /// Takes a frame's price; returns `false` if the client asks too much.
    pub(super) fn take_frame(&mut self, now: Instant) -> bool {
        self.take(1.0, now)
    }

    /// Takes the additional price of a malformed frame.
    pub(super) fn take_malformed(&mut self, now: Instant) -> bool {
        self.take(MALFORMED_COST, now)
    }

    fn take(&mut self, price: f64, now: Instant) -> bool {
        let refilled = now.duration_since(self.since).as_secs_f64() * REFILL_PER_SECOND;
        self.left = (self.left + refilled).min(BURST) - price;
        self.since = now;
        self.left >= 0.0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_burst_is_taken_and_a_flood_is_not() {
        let now = Instant::now();
        let mut budget = Budget::new(now);
        assert!((0..60).all(|_| budget.take_frame(now)));
        assert!(!budget.take_frame(now));
    }

    #[test]
    fn nonsense_costs_more() {
        let now = Instant::now();
        let mut budget = Budget::new(now);
        let taken = (0..60).take_while(|_| budget.take_malformed(now)).count();
        assert_eq!(taken, 10);
    }

    #[test]
    fn time_refills_the_budget_up_to_a_burst() {
        let now = Instant::now();
        let mut budget = Budget::new(now);
        let later = now + Duration::from_mins(10);
        assert!((0..60).all(|_| budget.take_frame(later)));
        assert!(!budget.take_frame(later));
        assert!(budget.take_frame(later + Duration::from_secs(1)));
    }
}
