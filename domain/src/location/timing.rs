//! When fixes were made: the person and that time name a fix.

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};

use super::Fix;

/// How far a sender's clock may run ahead at most. A setting may allow less: what looks for a fix
/// in the log relies on this bound, whatever was allowed when the fix was accepted.
pub const FURTHEST_AHEAD: TimeDelta = TimeDelta::minutes(5);
/// How far the clocks of the log and of the process that accepted a fix may be apart.
pub const CLOCKS_APART: TimeDelta = TimeDelta::minutes(5);

/// Since when, by the log's clock, the log may hold a fix made at `made` or later: none is accepted
/// long before it was made.
pub fn taken_since(made: DateTime<Utc>) -> DateTime<Utc> {
    made.checked_sub_signed(FURTHEST_AHEAD + CLOCKS_APART)
        .unwrap_or(DateTime::UNIX_EPOCH)
        // The log's clock begins later still.
        .max(DateTime::UNIX_EPOCH)
}

/// A fix with its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed<'f> {
    /// The fix.
    pub fix: &'f Fix,
    /// When it was made.
    pub recorded_at: DateTime<Utc>,
    /// Whether it is the first of that time; all others are repeats of the same fix.
    pub is_new: bool,
}

/// Gives each fix its time, and decides which of them are new. Those without a time were made now,
/// in the given order: each gets its own microsecond, since they are separate fixes.
pub fn settle_times(
    fixes: &[Fix],
    is_known: impl Fn(DateTime<Utc>) -> bool,
    now: DateTime<Utc>,
) -> Vec<Timed<'_>> {
    let mut taken: HashSet<DateTime<Utc>> = fixes.iter().filter_map(|f| f.recorded_at).collect();
    let mut seen = HashSet::new();
    let mut free = now;
    let settled = fixes.iter().map(|fix| {
        let recorded_at = fix.recorded_at.unwrap_or_else(|| {
            while is_known(free) || taken.contains(&free) {
                free += TimeDelta::microseconds(1);
            }
            taken.insert(free);
            free
        });
        Timed {
            fix,
            recorded_at,
            is_new: seen.insert(recorded_at) && !is_known(recorded_at),
        }
    });
    settled.collect()
}
