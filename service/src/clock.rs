//! The clock, passed in so that windows, tokens and timers can be tested.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};

/// A source of the current time.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Returns the current time.
    fn now(&self) -> DateTime<Utc>;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "everybody else asks here")]
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }
}

/// A clock that only moves when it is advanced; clones show the same time.
#[derive(Clone, Debug)]
pub struct ManualClock {
    microseconds: Arc<AtomicI64>,
}

impl ManualClock {
    /// Creates a clock that shows `now`.
    pub fn new(now: DateTime<Utc>) -> Self {
        Self {
            microseconds: Arc::new(AtomicI64::new(now.timestamp_micros())),
        }
    }

    /// Advances the clock.
    pub fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        self.microseconds.fetch_add(by, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> DateTime<Utc> {
        let microseconds = self.microseconds.load(Ordering::SeqCst);
        DateTime::from_timestamp_micros(microseconds).unwrap_or_default()
    }
}
