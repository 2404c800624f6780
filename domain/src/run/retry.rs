//! When a failed step is tried again.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use schemas::workflow::Retry;

/// The part of a wait that jitter may take away, so that what failed together is not retried
/// together.
const JITTER: f64 = 0.2;

/// How long to wait after the `attempt`th failure: doubling from `initialSeconds`, at most
/// `maxSeconds`, less up to a fifth depending on `chance` (from 0 to 1).
pub fn delay(retry: &Retry, attempt: u32, chance: f64) -> Duration {
    let doublings = i32::try_from(attempt.saturating_sub(1).min(64)).unwrap_or(64);
    let seconds = (retry.initial_seconds * 2_f64.powi(doublings)).min(retry.max_seconds);
    let seconds = seconds * (1.0 - JITTER * chance.clamp(0.0, 1.0));
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}

/// When the next attempt begins after the `attempt`th has failed, not before what the receiver
/// asked for; `None` if that was the last.
pub fn retry_at(
    retry: &Retry,
    attempt: u32,
    now: DateTime<Utc>,
    chance: f64,
    asked_for: Option<DateTime<Utc>>,
) -> Option<DateTime<Utc>> {
    if attempt >= retry.max_attempts {
        return None;
    }
    let delay = TimeDelta::from_std(delay(retry, attempt, chance)).unwrap_or(TimeDelta::MAX);
    let own = now
        .checked_add_signed(delay)
        .unwrap_or(DateTime::<Utc>::MAX_UTC);
    Some(asked_for.map_or(own, |asked_for| own.max(asked_for)))
}
