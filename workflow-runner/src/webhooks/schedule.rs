//! Retry schedule of failed deliveries.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// The longest wait that a receiver may ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_hours(24);
/// Maximum relative jitter of a wait, so that deliveries that failed together are not retried
/// together.
const JITTER: f64 = 0.2;

/// The waits between attempts.
#[derive(Clone, Debug)]
pub(super) struct Schedule(Vec<Duration>);

impl Schedule {
    pub(super) fn new(waits: Vec<Duration>) -> Self {
        Self(waits)
    }

    /// The wait after the failure of the attempt with this number (from 1); `None` after the
    /// last. `luck` is a random number from 0 to 1.
    pub(super) fn wait(
        &self,
        attempt: u32,
        retry_after: Option<Duration>,
        luck: f64,
    ) -> Option<Duration> {
        let nth = usize::try_from(attempt).ok()?.checked_sub(1)?;
        let wait = self.0.get(nth)?.mul_f64(1.0 + JITTER * luck);
        let asked = retry_after.unwrap_or_default().min(MAX_RETRY_AFTER);
        Some(wait.max(asked))
    }
}

/// The wait in a `Retry-After` header: seconds or a date.
pub(super) fn retry_after(value: &str, now: DateTime<Utc>) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = DateTime::parse_from_rfc2822(value).ok()?;
    (date.with_timezone(&Utc) - now).to_std().ok()
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone as _;

    use super::*;

    fn schedule() -> Schedule {
        Schedule::new(vec![Duration::from_secs(5), Duration::from_mins(5)])
    }

    #[test]
    fn waits_follow_the_list_and_end_with_it() {
        assert_eq!(schedule().wait(1, None, 0.0), Some(Duration::from_secs(5)));
        assert_eq!(schedule().wait(2, None, 0.0), Some(Duration::from_mins(5)));
        assert_eq!(schedule().wait(3, None, 0.0), None);
        assert_eq!(schedule().wait(3, Some(Duration::from_secs(1)), 0.0), None);
    }

    #[test]
    fn jitter_only_stretches() {
        let wait = schedule().wait(2, None, 1.0).unwrap();
        assert_eq!(wait, Duration::from_mins(6));
    }

    #[test]
    fn a_receiver_may_ask_for_longer_but_not_for_ever() {
        let after = |seconds| schedule().wait(1, Some(Duration::from_secs(seconds)), 0.0);
        assert_eq!(after(60), Some(Duration::from_mins(1)));
        assert_eq!(after(1), Some(Duration::from_secs(5)));
        assert_eq!(after(u64::MAX), Some(MAX_RETRY_AFTER));
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = Utc.with_ymd_and_hms(2026, 11, 21, 12, 0, 0).unwrap();
        assert_eq!(retry_after(" 120 ", now), Some(Duration::from_mins(2)));
        let date = "Sat, 21 Nov 2026 12:01:00 GMT";
        assert_eq!(retry_after(date, now), Some(Duration::from_mins(1)));
        assert_eq!(retry_after("Sat, 21 Nov 2026 11:00:00 GMT", now), None);
        assert_eq!(retry_after("soon", now), None);
    }
}
