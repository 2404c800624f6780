//! What this process owns, and until when for certain.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::moment::Moment;
use super::{Owned, Work};

/// The part of `ttl` by which an owner stops before others may begin.
const MARGIN: u32 = 6;

/// State shared by the member, its heartbeats and the users of the leases.
pub(super) struct LeaseState {
    /// Work in progress in each partition.
    guards: Vec<AtomicUsize>,
    /// How often each partition has been lost or given up.
    losses: Vec<AtomicU64>,
    ownership: Mutex<Ownership>,
    /// The owned partitions of each kind of work.
    publish: [watch::Sender<Owned>; Work::ALL.len()],
}

struct Ownership {
    /// Until when the owned partitions are certainly ours.
    valid_until: Moment,
    owned: BTreeSet<u16>,
    /// Partitions being handed over, and when they leave at the latest.
    leaving: BTreeMap<u16, Instant>,
    /// How often all leases have expired.
    lapses: u64,
}

impl LeaseState {
    pub(super) fn new(partitions: u16) -> Self {
        Self {
            guards: (0..partitions).map(|_| AtomicUsize::new(0)).collect(),
            losses: (0..partitions).map(|_| AtomicU64::new(0)).collect(),
            ownership: Mutex::new(Ownership {
                valid_until: Moment::now(),
                owned: BTreeSet::new(),
                leaving: BTreeMap::new(),
                lapses: 0,
            }),
            publish: Default::default(),
        }
    }

    pub(super) fn subscribe(&self, work: Work) -> watch::Receiver<Owned> {
        self.publish[work as usize].subscribe()
    }

    pub(super) fn partitions(&self) -> u16 {
        u16::try_from(self.guards.len()).unwrap_or(u16::MAX)
    }

    // --- Queries by users of the leases.

    pub(super) fn owns(&self, partition: u16) -> bool {
        let ownership = self.ownership();
        ownership.is_current() && ownership.owned.contains(&partition)
    }

    /// Counts work as in progress; returns the partition's losses so far.
    pub(super) fn begin_guard(&self, partition: u16) -> Option<u64> {
        let place = usize::from(partition);
        let losses = self.losses.get(place)?.load(Ordering::SeqCst);
        self.guards[place].fetch_add(1, Ordering::SeqCst);
        Some(losses)
    }

    pub(super) fn end_guard(&self, partition: u16) {
        self.guards[usize::from(partition)].fetch_sub(1, Ordering::SeqCst);
    }

    pub(super) fn is_unbroken(&self, partition: u16, since: u64) -> bool {
        let losses = self.losses[usize::from(partition)].load(Ordering::SeqCst);
        self.ownership().is_current() && losses == since
    }

    // --- Changes by the member and its heartbeats.

    /// A heartbeat that was sent at `sent` has been acknowledged.
    pub(super) fn renew(&self, sent: Moment, ttl: Duration) {
        let mut ownership = self.ownership();
        // Expired leases must be claimed again, not extended.
        self.lapse(&mut ownership);
        let valid_until = sent.plus(ttl.saturating_sub(ttl / MARGIN));
        ownership.valid_until = ownership.valid_until.max(valid_until);
    }

    /// Drops everything once the leases have expired.
    pub(super) fn lapse_if_due(&self) {
        self.lapse(&mut self.ownership());
    }

    fn lapse(&self, ownership: &mut Ownership) {
        if ownership.is_current() {
            return;
        }
        ownership.lapses += 1;
        let lost = std::mem::take(&mut ownership.owned);
        let leaving = std::mem::take(&mut ownership.leaving);
        if lost.is_empty() && leaving.is_empty() {
            return;
        }
        tracing::warn!("Leases ran out");
        for partition in lost.into_iter().chain(leaving.into_keys()) {
            self.lose(partition);
        }
        self.publish(ownership);
    }

    /// Counts how often all leases have expired: a claim made before the last time is void.
    pub(super) fn lapses(&self) -> u64 {
        self.ownership().lapses
    }

    /// Gains a partition by a claim made after `lapses` lapses.
    pub(super) fn gain(&self, partition: u16, lapses: u64) {
        let mut ownership = self.ownership();
        self.lapse(&mut ownership);
        if ownership.lapses == lapses && !ownership.leaving.contains_key(&partition) {
            ownership.owned.insert(partition);
            self.publish(&ownership);
        }
    }

    /// Drops partitions that another member has taken.
    pub(super) fn keep(&self, ours: impl Fn(u16) -> bool) {
        let mut ownership = self.ownership();
        let lost = |partition: &u16| {
            let lost = !ours(*partition);
            if lost {
                self.lose(*partition);
            }
            lost
        };
        ownership.owned.retain(|partition| !lost(partition));
        ownership.leaving.retain(|partition, _| !lost(partition));
        self.publish(&ownership);
    }

    /// Starts handing over what exceeds `due`, each partition by `latest` at the latest.
    pub(super) fn withdraw_beyond(&self, due: usize, latest: Instant) {
        let mut ownership = self.ownership();
        while ownership.owned.len() > due {
            if let Some(partition) = ownership.owned.pop_last() {
                ownership.leaving.insert(partition, latest);
            }
        }
        self.publish(&ownership);
    }

    /// Withdraws everything at once; returns what has to be released.
    pub(super) fn withdraw_all(&self) -> Vec<u16> {
        let mut ownership = self.ownership();
        let owned = std::mem::take(&mut ownership.owned);
        let leaving = std::mem::take(&mut ownership.leaving);
        self.publish(&ownership);
        let current = ownership.is_current();
        ownership.valid_until = Moment::now();
        let held = owned.into_iter().chain(leaving.into_keys());
        let held = held.inspect(|partition| self.lose(*partition));
        if current { held.collect() } else { Vec::new() }
    }

    /// Leaving partitions that may go now: nobody works on them, or their time is over.
    pub(super) fn may_leave(&self) -> Vec<u16> {
        let now = Instant::now();
        let ownership = self.ownership();
        let leaving = ownership.leaving.iter();
        let done = leaving.filter(|(partition, latest)| {
            let held = self.guards[usize::from(**partition)].load(Ordering::SeqCst) > 0;
            !held || **latest <= now
        });
        let done = done.map(|(partition, _)| *partition);
        done.inspect(|partition| self.lose(*partition)).collect()
    }

    pub(super) fn left(&self, partition: u16) {
        self.ownership().leaving.remove(&partition);
    }

    pub(super) fn is_leaving(&self) -> bool {
        !self.ownership().leaving.is_empty()
    }

    pub(super) fn owned_count(&self) -> usize {
        self.ownership().owned.len()
    }

    /// Whether a partition is neither owned nor still leaving.
    pub(super) fn is_strange(&self, partition: u16) -> bool {
        let ownership = self.ownership();
        !ownership.owned.contains(&partition) && !ownership.leaving.contains_key(&partition)
    }

    /// Invalidates every guard of a partition.
    fn lose(&self, partition: u16) {
        self.losses[usize::from(partition)].fetch_add(1, Ordering::SeqCst);
    }

    fn publish(&self, ownership: &Ownership) {
        for (work, publish) in Work::ALL.into_iter().zip(&self.publish) {
            let numbers = ownership.owned.iter();
            let owned = numbers.filter_map(|number| work.partition(*number));
            let owned: BTreeSet<u16> = owned.collect();
            let count = u32::try_from(owned.len()).unwrap_or(u32::MAX);
            metrics::gauge!("waypost_leases_owned", "work" => work.name()).set(count);
            publish.send_if_modified(|published| {
                let changed = **published != owned;
                if changed {
                    *published = Arc::new(owned);
                }
                changed
            });
        }
    }

    fn ownership(&self) -> MutexGuard<'_, Ownership> {
        self.ownership
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// As if the process had been suspended: its leases expire before it notices.
    #[cfg(test)]
    pub(super) fn expire(&self) {
        self.ownership().valid_until = Moment::now();
    }
}

impl Ownership {
    fn is_current(&self) -> bool {
        Moment::now() < self.valid_until
    }
}
