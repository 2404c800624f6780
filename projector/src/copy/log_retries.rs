//! Continues long work once the log answers again.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::error::RepairError;

/// Pause between two attempts.
const AGAIN: Duration = Duration::from_millis(500);
/// The number of attempts in a row that may fail.
const ATTEMPTS: u32 = 60;
/// Work that lasted this long had reached the log in between.
const GOES_ON: Duration = Duration::from_secs(30);

/// Waits while the log does not answer, for half a minute and more, between attempts that each
/// continue where the previous one was: nobody wants to start over from the first event because a
/// server was busy for a moment.
pub(crate) struct LogRetries {
    left: u32,
    began: Instant,
}

impl LogRetries {
    /// Begins with the first attempt.
    pub(crate) fn begin() -> Self {
        Self {
            left: ATTEMPTS,
            began: Instant::now(),
        }
    }

    /// Whether to try again after this error; if so, it waits for a moment.
    pub(crate) async fn allows(&mut self, error: &RepairError) -> bool {
        if self.began.elapsed() >= GOES_ON {
            self.left = ATTEMPTS;
        }
        if self.left == 0 || !error.passes() {
            return false;
        }
        self.left -= 1;
        tracing::warn!(%error, "Waiting for the log");
        sleep(AGAIN).await;
        self.began = Instant::now();
        true
    }
}

#[cfg(test)]
mod tests {
    use event_log::ReadError;

    use super::*;

    fn away() -> RepairError {
        ReadError::Unavailable("nobody is there".to_owned()).into()
    }

    /// Returns the number of attempts, up to `most`, if each takes this long.
    async fn attempts(error: RepairError, each: Duration, most: u32) -> u32 {
        let mut retries = LogRetries::begin();
        for attempt in 1..most {
            sleep(each).await;
            if !retries.allows(&error).await {
                return attempt;
            }
        }
        most
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_that_stays_away_is_given_up() {
        let began = Instant::now();
        let made = attempts(away(), Duration::ZERO, 1_000).await;
        assert_eq!(made, ATTEMPTS + 1);
        assert_eq!(began.elapsed(), AGAIN * ATTEMPTS);
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_goes_on_in_between_is_never_given_up() {
        assert_eq!(attempts(away(), GOES_ON, 1_000).await, 1_000);
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_that_does_not_pass_is_not_retried() {
        let made = attempts(RepairError::Stopped, Duration::ZERO, 1_000).await;
        assert_eq!(made, 1);
    }
}
