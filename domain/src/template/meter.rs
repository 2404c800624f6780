//! What a rendering may cost, and what it has cost.
//!
//! Work is counted in units: a unit is about a byte that is read, compared or copied. Everything
//! that an expression does is paid for in advance, so a rendering ends soon after its means do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use minijinja::value::Object;
use minijinja::{Error, ErrorKind};

/// Pays for all that is rendered with it, whatever else runs.
#[derive(Clone, Debug)]
pub struct Meter(Arc<Means>);

#[derive(Debug)]
pub(super) struct Means {
    work: u64,
    left: AtomicU64,
    exhausted: AtomicBool,
    stopped: AtomicBool,
}

impl Object for Means {}

impl Meter {
    /// Creates a meter for the given number of units of work.
    pub fn new(work: u64) -> Self {
        Self(Arc::new(Means {
            work,
            left: AtomicU64::new(work),
            exhausted: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        }))
    }

    /// Whether more was requested than available; nothing is paid for any more.
    pub fn is_exhausted(&self) -> bool {
        self.0.exhausted.load(Ordering::Relaxed)
    }

    /// Stops what is in progress: nothing is paid for any more.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }

    /// Pays for work other than templates; returns whether there was enough.
    pub fn pay(&self, units: u64) -> bool {
        let units = usize::try_from(units).unwrap_or(usize::MAX);
        self.0.charge(units).is_ok()
    }

    /// Units paid for so far.
    pub fn spent(&self) -> u64 {
        self.0.work - self.0.left.load(Ordering::Relaxed)
    }

    pub(super) fn means(&self) -> &Arc<Means> {
        &self.0
    }
}

impl Means {
    /// Takes `units` from what is left.
    pub(super) fn charge(&self, units: usize) -> Result<(), Error> {
        let rest = self.affords(units)?;
        // A rendering runs on one thread; the atomic only makes the value shareable.
        self.left.store(rest, Ordering::Relaxed);
        Ok(())
    }

    /// Checks that `units` are left, and returns what would remain. Work that pays step by step is
    /// refused by this before its first step.
    pub(super) fn affords(&self, units: usize) -> Result<u64, Error> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(self.refusal("took too long"));
        }
        let left = self.left.load(Ordering::Relaxed);
        let units = u64::try_from(units).unwrap_or(u64::MAX);
        left.checked_sub(units).ok_or_else(|| {
            self.exhausted.store(true, Ordering::Relaxed);
            self.left.store(0, Ordering::Relaxed);
            self.refusal("is too expensive")
        })
    }

    fn refusal(&self, what: &str) -> Error {
        let work = self.work;
        let reason = format!(
            "{what} (the limit is {work} units of about one byte): use shorter lists or texts, or \
             split the work into several steps"
        );
        Error::new(ErrorKind::OutOfFuel, reason)
    }
}
