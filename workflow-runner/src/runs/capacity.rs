//! The capacity of this process, shared by organization.
//!
//! A run takes a working place while it is read, decided and appended, and none while it waits for
//! the answers of its HTTP calls: those have places of their own, and many more of them, since they
//! cost only a connection and some memory. However many calls of one or several organizations hang,
//! the runs of another begin and end. The memory that runs hold while they wait is bounded in
//! bytes, by the same rule. Runs started by events work in separate places, few enough that,
//! however many there are, the machine has time for what somebody waits for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use service::{Share, Shares};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::settings::RunSettings;
use super::turn::{Origin, Turn};

const MIB: usize = 1024 * 1024;

/// Places to work, to call and to be held in memory. Clones are the same capacity.
#[derive(Clone, Debug)]
pub(super) struct Capacity(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    work: Shares<Turn>,
    work_by_events: Shares<Turn>,
    calls: Shares<Turn>,
    bounds: Bounds,
    calls_waiting: AtomicUsize,
    held: Mutex<Held>,
    freed: Notify,
}

#[derive(Debug)]
struct Bounds {
    work: usize,
    work_by_events: usize,
    calls: usize,
    bytes: usize,
}

/// Bytes that runs hold while they wait.
#[derive(Debug, Default)]
struct Held {
    total: usize,
    by_turn: HashMap<Turn, usize>,
}

/// How much of the capacity is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) working: usize,
    pub(super) calls: usize,
    pub(super) calls_waiting: usize,
    pub(super) bytes: usize,
}

/// A working place.
#[derive(Debug)]
pub(super) struct Working {
    share: Option<Share<Turn>>,
    capacity: Capacity,
}

/// A place for a call in progress.
#[derive(Debug)]
pub(super) struct Calling(#[expect(dead_code, reason = "held for its drop")] Share<Turn>);

/// The memory that one run holds.
#[derive(Debug)]
pub(super) struct Weight {
    capacity: Capacity,
    turn: Turn,
    bytes: usize,
}

impl Capacity {
    pub(super) fn new(settings: &RunSettings) -> Self {
        let bounds = Bounds {
            work: settings.concurrency.max(1),
            work_by_events: settings.event_concurrency.max(1),
            calls: settings.calls.max(1),
            bytes: settings.memory_mib.max(1).saturating_mul(MIB),
        };
        Self(Arc::new(Inner {
            work: Shares::new(bounds.work),
            work_by_events: Shares::new(bounds.work_by_events),
            calls: Shares::new(bounds.calls),
            bounds,
            calls_waiting: AtomicUsize::new(0),
            held: Mutex::default(),
            freed: Notify::new(),
        }))
    }

    /// Runs that may be held at once: each is working, or waits for a call at least.
    pub(super) fn runs(&self) -> usize {
        let bounds = &self.0.bounds;
        let working = bounds.work.saturating_add(bounds.work_by_events);
        working.saturating_add(bounds.calls)
    }

    fn work_places(&self, origin: Origin) -> &Shares<Turn> {
        match origin {
            Origin::Outside => &self.0.work,
            Origin::Event => &self.0.work_by_events,
        }
    }

    /// A working place, if the organization may have one more.
    pub(super) fn try_work(&self, turn: Turn) -> Option<Working> {
        let share = self.work_places(turn.origin()).try_enter(&turn)?;
        Some(self.working(share))
    }

    /// A working place as soon as the organization may have one more.
    pub(super) async fn work(&self, turn: Turn) -> Working {
        let share = self.work_places(turn.origin()).enter(turn).await;
        self.working(share)
    }

    fn working(&self, share: Share<Turn>) -> Working {
        Working {
            share: Some(share),
            capacity: self.clone(),
        }
    }

    /// Whether a working place is free for a run of that origin.
    pub(super) fn has_work_place(&self, origin: Origin) -> bool {
        self.work_places(origin).free() > 0
    }

    /// Waits until a working place is given back.
    pub(super) async fn freed(&self) {
        self.0.freed.notified().await;
    }

    /// A place for a call as soon as the organization may have one more; `None` if `stopping` is
    /// cancelled before.
    pub(super) async fn call(&self, turn: Turn, stopping: &CancellationToken) -> Option<Calling> {
        let turn = turn.org();
        if let Some(share) = self.0.calls.try_enter(&turn) {
            return Some(Calling(share));
        }
        let _waiting = Waiting::begin(&self.0.calls_waiting);
        let entering = self.0.calls.enter(turn);
        stopping.run_until_cancelled(entering).await.map(Calling)
    }

    /// Registers how much a run holds while it waits.
    pub(super) fn hold(&self, turn: Turn, bytes: usize) -> Weight {
        let turn = turn.org();
        let mut held = self.held();
        held.total += bytes;
        *held.by_turn.entry(turn).or_default() += bytes;
        drop(held);
        Weight {
            capacity: self.clone(),
            turn,
            bytes,
        }
    }

    /// Whether the organization may have one more run in memory. One that holds nothing always may:
    /// how much a run holds is known only once it has begun.
    pub(super) fn has_memory_for(&self, turn: Turn) -> bool {
        let held = self.held();
        let own = held.by_turn.get(&turn.org()).copied().unwrap_or_default();
        own == 0 || own < self.0.bounds.bytes.saturating_sub(held.total)
    }

    pub(super) fn load(&self) -> Load {
        let bounds = &self.0.bounds;
        let working = bounds.work - self.0.work.free();
        Load {
            working: working + bounds.work_by_events - self.0.work_by_events.free(),
            calls: bounds.calls - self.0.calls.free(),
            calls_waiting: self.0.calls_waiting.load(Ordering::Relaxed),
            bytes: self.held().total,
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        // Given back before anyone is notified.
        drop(self.share.take());
        self.capacity.0.freed.notify_one();
    }
}

impl Drop for Weight {
    fn drop(&mut self) {
        let mut held = self.capacity.held();
        held.total -= self.bytes;
        if let Some(own) = held.by_turn.get_mut(&self.turn) {
            *own -= self.bytes;
            if *own == 0 {
                held.by_turn.remove(&self.turn);
            }
        }
    }
}

/// Counts a waiter while it waits.
struct Waiting<'c>(&'c AtomicUsize);

impl<'c> Waiting<'c> {
    fn begin(count: &'c AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn capacity(concurrency: usize, calls: usize) -> Capacity {
        Capacity::new(&RunSettings {
            concurrency,
            calls,
            memory_mib: 1,
            ..RunSettings::default()
        })
    }

    #[test]
    fn who_gives_a_working_place_back_says_so() {
        let capacity = capacity(1, 1);
        let working = capacity.try_work(Turn(2));
        assert!(working.is_some() && !capacity.has_work_place(Origin::Outside));
        assert!(capacity.freed().now_or_never().is_none());
        drop(working);
        assert!(
            capacity.freed().now_or_never().is_some() && capacity.has_work_place(Origin::Outside)
        );
    }

    #[test]
    fn runs_of_events_have_few_places_and_take_none_of_the_others() {
        let capacity = Capacity::new(&RunSettings {
            concurrency: 4,
            event_concurrency: 2,
            ..RunSettings::default()
        });
        let by_events: Vec<_> = std::iter::from_fn(|| capacity.try_work(Turn(3))).collect();
        assert_eq!(by_events.len(), 1);
        let others: Vec<_> = std::iter::from_fn(|| capacity.try_work(Turn(2))).collect();
        assert_eq!(others.len(), 2);
        assert_eq!(capacity.load().working, 3);
    }

    #[test]
    fn a_call_waits_for_its_organizations_others_only() {
        let (capacity, stopping) = (capacity(1, 4), CancellationToken::new());
        let call = |turn| {
            capacity
                .call(Turn(turn), &stopping)
                .now_or_never()
                .flatten()
        };
        let held: Vec<_> = std::iter::from_fn(|| call(2)).collect();
        assert_eq!(held.len(), 2);
        assert!(call(4).is_some());
        let mut waiting = Box::pin(capacity.call(Turn(2), &stopping));
        assert!((&mut waiting).now_or_never().is_none());
        assert_eq!(capacity.load().calls_waiting, 1);
        stopping.cancel();
        assert!(waiting.now_or_never().is_some_and(|call| call.is_none()));
        assert_eq!(capacity.load().calls_waiting, 0);
    }

    #[test]
    fn one_that_fills_the_memory_leaves_room_for_others() {
        let capacity = capacity(1, 1);
        let half = capacity.hold(Turn(2), MIB / 2);
        assert!(!capacity.has_memory_for(Turn(2)) && capacity.has_memory_for(Turn(4)));
        let much = capacity.hold(Turn(4), MIB);
        assert!(!capacity.has_memory_for(Turn(5)) && capacity.has_memory_for(Turn(6)));
        drop((half, much));
        assert!(capacity.has_memory_for(Turn(2)));
        assert_eq!(capacity.load().bytes, 0);
    }
}
