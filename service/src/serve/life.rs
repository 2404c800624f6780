//! State shared by a connection's two halves: its bytes and its requests.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::places::ClientCount;

/// The requests of one connection. Waiting for its bytes is limited only while none is in progress.
pub(super) struct Life {
    born: Instant,
    begun: AtomicU64,
    under_way: AtomicU64,
    /// When the last event that ends a wait happened, in milliseconds after the birth.
    last: AtomicU64,
    upgraded: AtomicBool,
    /// Held until the connection ends.
    count: Mutex<Option<ClientCount>>,
}

impl Life {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            born: Instant::now(),
            begun: AtomicU64::new(0),
            under_way: AtomicU64::new(0),
            last: AtomicU64::new(0),
            upgraded: AtomicBool::new(false),
            count: Mutex::default(),
        })
    }

    /// Records that a request's head has arrived.
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

    /// Marks the connection as upgraded to another protocol, which has its own timeouts.
    pub(super) fn upgrade(&self, count: Option<ClientCount>) {
        self.upgraded.store(true, Ordering::Release);
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) = count;
    }

    pub(super) fn is_upgraded(&self) -> bool {
        self.upgraded.load(Ordering::Acquire)
    }

    /// Since when the connection has been idle; its birth if nothing has happened yet.
    pub(super) fn idle_since(&self) -> Instant {
        self.born + Duration::from_millis(self.last.load(Ordering::Acquire))
    }

    /// Starts the idle time.
    pub(super) fn rest(&self) {
        let since_birth = self.born.elapsed().as_millis();
        let since_birth = u64::try_from(since_birth).unwrap_or(u64::MAX);
        self.last.store(since_birth, Ordering::Release);
    }
}

/// A part of a request (its body, its response) that is in progress until this is dropped.
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
        // The time first, so that an idle connection is never seen with an old start of its idle
        // time.
        self.0.rest();
        self.0.under_way.fetch_sub(1, Ordering::AcqRel);
    }
}
