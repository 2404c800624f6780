//! Time as counted by this machine alone.

use std::time::Duration;

use bytes::Bytes;
use rustix::time::{ClockId, clock_gettime};

/// A moment of a clock that nobody sets and that keeps running while the machine is suspended,
/// unlike that of the standard library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(Duration);

impl Moment {
    pub(super) fn now() -> Self {
        let time = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or_default();
        Self(Duration::new(seconds, nanoseconds))
    }

    pub(super) fn plus(self, time: Duration) -> Self {
        Self(self.0 + time)
    }

    /// The time from `earlier` to this moment; zero if that is later.
    pub(super) fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// Its form in a heartbeat, to be read back by the sender.
    pub(super) fn write(self) -> Bytes {
        Bytes::from(self.0.as_nanos().to_string())
    }

    pub(super) fn read(text: &[u8]) -> Option<Self> {
        let nanoseconds: u64 = std::str::from_utf8(text).ok()?.parse().ok()?;
        Some(Self(Duration::from_nanos(nanoseconds)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_survives_its_text() {
        let now = Moment::now();
        assert_eq!(Moment::read(&now.write()), Some(now));
        assert_eq!(Moment::read(b"alive"), None);
    }
}
