//! What this process owns, and until when surely.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::Owned;

/// The part of `ttl` by which an owner stops before others may begin.
const MARGIN: u32 = 6;

/// What the member, its signs of life and those who use the leases all see.
pub(super) struct Tenure {
    name: String,
    /// Work under way in each partition.
    holds: Vec<AtomicUsize>,
    /// How often each partition has been lost or given up.
    losses: Vec<AtomicU64>,
    state: Mutex<State>,
    publish: watch::Sender<Owned>,
}

struct State {
    /// Until when what is owned is surely ours.
    valid_until: Instant,
    owned: BTreeSet<u16>,
    /// Partitions on their way to somebody else, and when they go at the latest.
    leaving: BTreeMap<u16, Instant>,
    /// How often everything has run out.
    lapses: u64,
}

impl Tenure {
    pub(super) fn new(name: &str, partitions: u16) -> Self {
        Self {
            name: name.to_owned(),
            holds: (0..partitions).map(|_| AtomicUsize::new(0)).collect(),
            losses: (0..partitions).map(|_| AtomicU64::new(0)).collect(),
            state: Mutex::new(State {
                valid_until: Instant::now(),
                owned: BTreeSet::new(),
                leaving: BTreeMap::new(),
                lapses: 0,
            }),
            publish: watch::Sender::default(),
        }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Owned> {
        self.publish.subscribe()
    }

    pub(super) fn partitions(&self) -> u16 {
        u16::try_from(self.holds.len()).unwrap_or(u16::MAX)
    }

    // --- What users ask.

    pub(super) fn holds(&self, partition: u16) -> bool {
        let state = self.state();
        state.is_current() && state.owned.contains(&partition)
    }

    /// Counts work as under way; gives back the partition's losses so far.
    pub(super) fn begin_hold(&self, partition: u16) -> Option<u64> {
        let place = usize::from(partition);
        let losses = self.losses.get(place)?.load(Ordering::SeqCst);
        self.holds[place].fetch_add(1, Ordering::SeqCst);
        Some(losses)
    }

    pub(super) fn end_hold(&self, partition: u16) {
        self.holds[usize::from(partition)].fetch_sub(1, Ordering::SeqCst);
    }

    pub(super) fn is_unbroken(&self, partition: u16, since: u64) -> bool {
        let losses = self.losses[usize::from(partition)].load(Ordering::SeqCst);
        self.state().is_current() && losses == since
    }

    // --- What the member and its signs change.

    /// A sign of life that was sent at `sent` has been acknowledged.
    pub(super) fn renew(&self, sent: Instant, ttl: Duration) {
        let mut state = self.state();
        // What has run out meanwhile must be won again, not prolonged.
        self.lapse(&mut state);
        let valid_until = sent + ttl - ttl / MARGIN;
        state.valid_until = state.valid_until.max(valid_until);
    }

    /// Lets go of everything once the leases have run out.
    pub(super) fn lapse_if_due(&self) {
        self.lapse(&mut self.state());
    }

    fn lapse(&self, state: &mut State) {
        if state.is_current() {
            return;
        }
        state.lapses += 1;
        let lost = std::mem::take(&mut state.owned);
        let leaving = std::mem::take(&mut state.leaving);
        if lost.is_empty() && leaving.is_empty() {
            return;
        }
        tracing::warn!(name = self.name, "Leases ran out");
        for partition in lost.into_iter().chain(leaving.into_keys()) {
            self.lose(partition);
        }
        self.publish(state);
    }

    /// Counts the times that everything has run out: a claim made before the last of them is void.
    pub(super) fn lapses(&self) -> u64 {
        self.state().lapses
    }

    /// A partition has been won by a claim made after `lapses` lapses.
    pub(super) fn gain(&self, partition: u16, lapses: u64) {
        let mut state = self.state();
        self.lapse(&mut state);
        if state.lapses == lapses && !state.leaving.contains_key(&partition) {
            state.owned.insert(partition);
            self.publish(&state);
        }
    }

    /// Partitions that somebody else has taken are theirs.
    pub(super) fn keep(&self, ours: impl Fn(u16) -> bool) {
        let mut state = self.state();
        let lost = |partition: &u16| {
            let lost = !ours(*partition);
            if lost {
                self.lose(*partition);
            }
            lost
        };
        state.owned.retain(|partition| !lost(partition));
        state.leaving.retain(|partition, _| !lost(partition));
        self.publish(&state);
    }

    /// Begins to hand over what exceeds `due`, each partition by `latest` at the latest.
    pub(super) fn withdraw_beyond(&self, due: usize, latest: Instant) {
        let mut state = self.state();
        while state.owned.len() > due {
            if let Some(partition) = state.owned.pop_last() {
                state.leaving.insert(partition, latest);
            }
        }
        self.publish(&state);
    }

    /// Withdraws everything at once; gives back what has to be given up.
    pub(super) fn withdraw_all(&self) -> Vec<u16> {
        let mut state = self.state();
        let owned = std::mem::take(&mut state.owned);
        let leaving = std::mem::take(&mut state.leaving);
        self.publish(&state);
        let current = state.is_current();
        state.valid_until = Instant::now();
        let held = owned.into_iter().chain(leaving.into_keys());
        let held = held.inspect(|partition| self.lose(*partition));
        if current { held.collect() } else { Vec::new() }
    }

    /// What is leaving and may go now: nobody works on it, or its time is over.
    pub(super) fn may_leave(&self) -> Vec<u16> {
        let now = Instant::now();
        let state = self.state();
        let leaving = state.leaving.iter();
        let done = leaving.filter(|(partition, latest)| {
            let held = self.holds[usize::from(**partition)].load(Ordering::SeqCst) > 0;
            !held || **latest <= now
        });
        let done = done.map(|(partition, _)| *partition);
        done.inspect(|partition| self.lose(*partition)).collect()
    }

    pub(super) fn left(&self, partition: u16) {
        self.state().leaving.remove(&partition);
    }

    pub(super) fn is_leaving(&self) -> bool {
        !self.state().leaving.is_empty()
    }

    pub(super) fn owned_count(&self) -> usize {
        self.state().owned.len()
    }

    /// Whether a partition is neither owned nor still leaving.
    pub(super) fn is_strange(&self, partition: u16) -> bool {
        let state = self.state();
        !state.owned.contains(&partition) && !state.leaving.contains_key(&partition)
    }

    /// Makes every hold on a partition worthless.
    fn lose(&self, partition: u16) {
        self.losses[usize::from(partition)].fetch_add(1, Ordering::SeqCst);
    }

    fn publish(&self, state: &State) {
        self.publish.send_if_modified(|published| {
            let changed = **published != state.owned;
            if changed {
                *published = Arc::new(state.owned.clone());
            }
            changed
        });
        let owned = u32::try_from(state.owned.len()).unwrap_or(u32::MAX);
        metrics::gauge!("waypost_leases_owned", "work" => self.name.clone()).set(owned);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As if the process had been suspended: its time is over before it knows.
    #[cfg(test)]
    pub(super) fn expire(&self) {
        self.state().valid_until = Instant::now();
    }
}

impl State {
    fn is_current(&self) -> bool {
        Instant::now() < self.valid_until
    }
}
