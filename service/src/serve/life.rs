//! What a connection's two halves know of each other: its bytes and its requests.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::places::Share;

/// The requests of one connection. Its bytes may be waited for only while none is under way.
pub(super) struct Life {
    born: Instant,
    begun: AtomicU64,
    under_way: AtomicU64,
    /// When the last thing happened that ends a wait, in milliseconds after the birth.
    last: AtomicU64,
    upgraded: AtomicBool,
    /// Counted until the connection ends.
    share: Mutex<Option<Share>>,
}

impl Life {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            born: Instant::now(),
            begun: AtomicU64::new(0),
            under_way: AtomicU64::new(0),
            last: AtomicU64::new(0),
            upgraded: AtomicBool::new(false),
            share: Mutex::default(),
        })
    }

    /// A request's head has come.
    pub(super) fn begin(self: &Arc<Self>) -> UnderWay {
        self.begun.fetch_add(1, Ordering::Relaxed);
        UnderWay::new(self)
    }

    /// How many requests have begun so far.
    pub(super) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Whether a request is being read or answered.
    pub(super) fn is_busy(&self) -> bool {
        self.under_way.load(Ordering::Acquire) > 0
    }

    /// The connection speaks another protocol from now on, which keeps its own time.
    pub(super) fn upgrade(&self, share: Option<Share>) {
        self.upgraded.store(true, Ordering::Release);
        *self.share.lock().unwrap_or_else(PoisonError::into_inner) = share;
    }

    pub(super) fn is_upgraded(&self) -> bool {
        self.upgraded.load(Ordering::Acquire)
    }

    /// Since when nothing has been under way: the birth, until something was.
    pub(super) fn idle_since(&self) -> Instant {
        self.born + Duration::from_millis(self.last.load(Ordering::Acquire))
    }

    /// Nothing is under way from now on.
    pub(super) fn rest(&self) {
        let since_birth = self.born.elapsed().as_millis();
        let since_birth = u64::try_from(since_birth).unwrap_or(u64::MAX);
        self.last.store(since_birth, Ordering::Release);
    }
}

/// A part of a request (its body, its answer) that is under way until this is dropped.
pub(super) struct UnderWay(Arc<Life>);

impl UnderWay {
    fn new(life: &Arc<Life>) -> Self {
        life.under_way.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(life))
    }
}

impl Clone for UnderWay {
    fn clone(&self) -> Self {
        Self::new(&self.0)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        // First the time, so that nobody sees the rest without its beginning.
        self.0.rest();
        self.0.under_way.fetch_sub(1, Ordering::AcqRel);
    }
}
