//! How long to wait for an answer of the log before asking what became of a commit, or whether
//! anything is stored after a position.
//!
//! On a busy machine, answers take longer. Sending again as early as ever would make the server do
//! everything several times, which takes longer still. So the wait follows recent answer times, and
//! doubles after each answer that did not come.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The wait, as a multiple of the slowest answer.
const TIMES: u32 = 2;
/// A slow answer is remembered for this time, and for at most twice as long.
const MEMORY: Duration = Duration::from_secs(10);

/// Recent answer times. Clones learn from each other.
#[derive(Clone)]
pub(crate) struct AnswerTimes {
    /// The shortest wait, however quick the answers were.
    least: Duration,
    /// The longest wait: an answer may be lost.
    most: Duration,
    slowest: Arc<Mutex<Slowest>>,
}

/// The slowest answers of the current span of time and of the one before.
struct Slowest {
    since: Instant,
    now: Duration,
    before: Duration,
}

impl AnswerTimes {
    pub(crate) fn of_appends() -> Self {
        Self::between(Duration::from_millis(700), Duration::from_secs(5))
    }

    /// For a connection with many reads: an answer comes after all that was asked before.
    pub(crate) fn of_reads() -> Self {
        Self::between(Duration::from_secs(2), Duration::from_secs(10))
    }

    fn between(least: Duration, most: Duration) -> Self {
        let slowest = Slowest {
            since: Instant::now(),
            now: Duration::ZERO,
            before: Duration::ZERO,
        };
        Self {
            least,
            most,
            slowest: Arc::new(Mutex::new(slowest)),
        }
    }

    /// How long to wait for an answer.
    pub(crate) fn timeout(&self) -> Duration {
        self.with(|slowest| slowest.now.max(slowest.before) * TIMES)
            .clamp(self.least, self.most)
    }

    /// How long to wait for an answer that is of no use after `by`. Half of the time until then is
    /// left for asking what became of the commit.
    pub(crate) fn timeout_by(&self, by: Instant) -> Duration {
        let left = by.saturating_duration_since(Instant::now());
        self.timeout().min(left / 2).max(self.least)
    }

    /// Learns that an answer came, or was given up on, after this time.
    pub(crate) fn learn(&self, after: Duration) {
        self.with(|slowest| slowest.now = slowest.now.max(after));
    }

    fn with<T>(&self, work: impl FnOnce(&mut Slowest) -> T) -> T {
        let mut slowest = self.slowest.lock().unwrap_or_else(PoisonError::into_inner);
        slowest.forget(Instant::now());
        work(&mut slowest)
    }
}

impl Slowest {
    fn forget(&mut self, now: Instant) {
        let passed = now.duration_since(self.since);
        if passed < MEMORY {
            return;
        }
        self.before = if passed < MEMORY * 2 {
            self.now
        } else {
            Duration::ZERO
        };
        (self.now, self.since) = (Duration::ZERO, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const LEAST: Duration = Duration::from_millis(700);
    const MOST: Duration = Duration::from_secs(5);

    fn soon() -> Instant {
        Instant::now() + Duration::from_mins(1)
    }

    #[tokio::test(start_paused = true)]
    async fn one_waits_twice_as_long_as_the_slowest_answer_of_late_took() {
        let times = AnswerTimes::between(LEAST, MOST);
        assert_eq!(times.timeout_by(soon()), LEAST);
        times.learn(MS * 900);
        times.learn(MS * 3);
        assert_eq!(times.timeout_by(soon()), MS * 1_800);
        tokio::time::advance(MEMORY).await;
        assert_eq!(times.timeout_by(soon()), MS * 1_800);
        tokio::time::advance(MEMORY).await;
        assert_eq!(times.timeout_by(soon()), LEAST);
        times.learn(MS * 900);
        tokio::time::advance(MEMORY * 2).await;
        assert_eq!(times.timeout_by(soon()), LEAST);
    }

    #[tokio::test(start_paused = true)]
    async fn each_answer_that_does_not_come_doubles_the_wait_up_to_a_bound() {
        let times = AnswerTimes::between(LEAST, MOST);
        let waits: Vec<_> = (0..5)
            .map(|_| {
                let wait = times.timeout_by(soon());
                times.learn(wait);
                wait
            })
            .collect();
        assert_eq!(waits, [LEAST, LEAST * 2, LEAST * 4, MOST, MOST]);
    }

    #[tokio::test(start_paused = true)]
    async fn half_of_the_time_is_left_for_a_question() {
        let times = AnswerTimes::between(LEAST, MOST);
        times.learn(MOST);
        assert_eq!(times.timeout_by(Instant::now() + MS * 3_000), MS * 1_500);
        assert_eq!(times.timeout_by(Instant::now() + MS * 100), LEAST);
    }
}
