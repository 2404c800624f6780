//! Places shared by independent holders: one that wants them all gets half, and there is always one
//! for a newcomer.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Waiting entries of one key before abandoned ones are first removed.
const FIRST_SWEEP: usize = 64;

/// A number of places, shared by key (an organization, a client's network).
///
/// A key may take one more place while it holds fewer than are free: alone it gets half of them,
/// two get a third each, and one that holds none never waits for those who hold many. Waiters are
/// served by the number of places their key holds, fewest first, equals in turn, and within a key
/// in order of arrival. A fixed limit for each key would leave most places unused when few want
/// them, and none for anybody when many keys fill theirs.
#[derive(Debug)]
pub struct Shares<K: Eq + Hash + Clone>(Arc<Mutex<State<K>>>);

/// A place that is held; dropping it gives it back.
#[must_use]
#[derive(Debug)]
pub struct Share<K: Eq + Hash + Clone> {
    state: Arc<Mutex<State<K>>>,
    key: K,
}

#[derive(Debug)]
struct State<K: Eq + Hash + Clone> {
    free: usize,
    holders: HashMap<K, Holder<K>>,
    /// Keys with waiters, by places held and then by turn.
    waiting: BTreeMap<(usize, u64), K>,
    last_turn: u64,
}

/// A key that holds places or waits for some.
#[derive(Debug)]
struct Holder<K: Eq + Hash + Clone> {
    held: usize,
    turn: u64,
    queue: VecDeque<oneshot::Sender<Share<K>>>,
    sweep_at: usize,
}

impl<K: Eq + Hash + Clone> Clone for Shares<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Eq + Hash + Clone> Shares<K> {
    /// Creates the given number of places, at least one.
    pub fn new(places: usize) -> Self {
        Self(Arc::new(Mutex::new(State {
            free: places.max(1),
            holders: HashMap::new(),
            waiting: BTreeMap::new(),
            last_turn: 0,
        })))
    }

    /// Takes a place if the key may have one more now.
    pub fn try_enter(&self, key: &K) -> Option<Share<K>> {
        let taken = lock(&self.0).take(key);
        taken.then(|| self.share(key))
    }

    /// Takes a place as soon as the key may have one more. Cancelling the wait loses the turn and
    /// nothing else.
    pub async fn enter(&self, key: K) -> Share<K> {
        loop {
            let coming = {
                let mut state = lock(&self.0);
                if state.take(&key) {
                    drop(state);
                    return self.share(&key);
                }
                state.queue(&key)
            };
            if let Ok(share) = coming.await {
                return share;
            }
        }
    }

    /// Number of free places.
    pub fn free(&self) -> usize {
        lock(&self.0).free
    }

    /// Number of places that a key holds.
    pub fn held_by(&self, key: &K) -> usize {
        let state = lock(&self.0);
        state.holders.get(key).map_or(0, |holder| holder.held)
    }

    fn share(&self, key: &K) -> Share<K> {
        Share {
            state: self.0.clone(),
            key: key.clone(),
        }
    }
}

impl<K: Eq + Hash + Clone> Drop for Share<K> {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.give_back(&self.key);
        while let Some((key, waiting)) = state.next() {
            // Never under the lock: a share that cannot be handed over is dropped, which takes the
            // lock again.
            drop(state);
            let share = Self {
                state: self.state.clone(),
                key,
            };
            drop(waiting.send(share));
            state = lock(&self.state);
        }
    }
}

fn lock<K: Eq + Hash + Clone>(state: &Mutex<State<K>>) -> MutexGuard<'_, State<K>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<K: Eq + Hash + Clone> State<K> {
    /// Takes a place if the key may have one; returns whether it did.
    fn take(&mut self, key: &K) -> bool {
        let held = self.holders.get(key).map_or(0, |holder| holder.held);
        let may = held < self.free;
        if may {
            self.free -= 1;
            self.change(key, |holder| holder.held += 1);
        }
        may
    }

    fn give_back(&mut self, key: &K) {
        self.free += 1;
        self.change(key, |holder| holder.held -= 1);
    }

    fn queue(&mut self, key: &K) -> oneshot::Receiver<Share<K>> {
        let (waiting, coming) = oneshot::channel();
        self.last_turn += 1;
        let turn = self.last_turn;
        self.change(key, |holder| {
            if holder.queue.is_empty() {
                holder.turn = turn;
            }
            if holder.queue.len() >= holder.sweep_at {
                holder.queue.retain(|waiting| !waiting.is_closed());
                holder.sweep_at = FIRST_SWEEP.max(holder.queue.len() * 2);
            }
            holder.queue.push_back(waiting);
        });
        coming
    }

    /// Takes the next place that a waiter may have, for that waiter.
    fn next(&mut self) -> Option<(K, oneshot::Sender<Share<K>>)> {
        loop {
            let (&(held, _), key) = self.waiting.first_key_value()?;
            if held >= self.free {
                return None;
            }
            let key = key.clone();
            self.last_turn += 1;
            let turn = self.last_turn;
            let mut next = None;
            self.change(&key, |holder| {
                holder.turn = turn;
                while let Some(waiting) = holder.queue.pop_front() {
                    if !waiting.is_closed() {
                        holder.held += 1;
                        next = Some(waiting);
                        break;
                    }
                }
            });
            if let Some(waiting) = next {
                self.free -= 1;
                return Some((key, waiting));
            }
        }
    }

    /// Changes a key's entry and updates its place in the waiting order.
    fn change(&mut self, key: &K, change: impl FnOnce(&mut Holder<K>)) {
        let holder = self.holders.entry(key.clone()).or_insert_with(|| Holder {
            held: 0,
            turn: 0,
            queue: VecDeque::new(),
            sweep_at: FIRST_SWEEP,
        });
        self.waiting.remove(&(holder.held, holder.turn));
        change(holder);
        if !holder.queue.is_empty() {
            self.waiting.insert((holder.held, holder.turn), key.clone());
        } else if holder.held == 0 {
            self.holders.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use proptest::prelude::*;

    use super::*;

    type Waiting = Pin<Box<dyn Future<Output = Share<u8>>>>;

    /// Begins to enter; returns the place or the waiting future.
    fn begin(shares: &Shares<u8>, key: u8) -> Result<Share<u8>, Waiting> {
        let shares = shares.clone();
        let mut entering: Waiting = Box::pin(async move { shares.enter(key).await });
        poll(&mut entering).ok_or(entering)
    }

    fn enters(shares: &Shares<u8>, key: u8) -> Share<u8> {
        begin(shares, key).unwrap_or_else(|_| panic!("{key} has to wait"))
    }

    fn waits(shares: &Shares<u8>, key: u8) -> Waiting {
        begin(shares, key).expect_err("a place that should not be there")
    }

    fn poll(entering: &mut Waiting) -> Option<Share<u8>> {
        let mut context = Context::from_waker(Waker::noop());
        match entering.as_mut().poll(&mut context) {
            Poll::Ready(share) => Some(share),
            Poll::Pending => None,
        }
    }

    fn fill(shares: &Shares<u8>, key: u8) -> Vec<Share<u8>> {
        std::iter::from_fn(|| shares.try_enter(&key)).collect()
    }

    #[test]
    fn one_alone_gets_half_and_two_get_a_third_each() {
        let shares = Shares::new(512);
        let first = fill(&shares, 1);
        assert_eq!(first.len(), 256);
        drop(first);
        let mut both = (Vec::new(), Vec::new());
        while let (Some(one), Some(two)) = (shares.try_enter(&1), shares.try_enter(&2)) {
            both.0.push(one);
            both.1.push(two);
        }
        assert!((170..=171).contains(&both.0.len()), "{}", both.0.len());
        assert!(shares.try_enter(&3).is_some());
    }

    #[test]
    fn a_newcomer_starts_at_once_beside_ten_thousand_who_wait() {
        let shares = Shares::new(16);
        let held = fill(&shares, 1);
        let waiting: Vec<_> = (0..10_000).map(|_| waits(&shares, 1)).collect();
        assert!(begin(&shares, 2).is_ok());
        drop((held, waiting));
        assert_eq!(shares.free(), 16);
    }

    #[test]
    fn those_who_wait_are_served_by_who_holds_the_fewest() {
        let shares = Shares::new(1);
        let held = enters(&shares, 1);
        let mut many = waits(&shares, 1);
        let mut few = waits(&shares, 2);
        let mut last = waits(&shares, 1);
        drop(held);
        let first = poll(&mut many).unwrap();
        assert!(poll(&mut few).is_none() && poll(&mut last).is_none());
        drop(first);
        let second = poll(&mut few).unwrap();
        drop(second);
        assert!(poll(&mut last).is_some());
    }

    #[test]
    fn those_who_stop_waiting_leave_nothing_behind() {
        let shares = Shares::new(1);
        let held = enters(&shares, 1);
        for _ in 0..100_000 {
            drop(waits(&shares, 1));
        }
        let queued = lock(&shares.0).holders[&1].queue.len();
        assert!(queued <= FIRST_SWEEP, "{queued}");
        drop(held);
        assert!(begin(&shares, 2).is_ok());
        assert!(lock(&shares.0).holders.is_empty());
    }

    proptest! {
        #[test]
        fn nobody_waits_for_a_place_that_it_may_have(
            places in 1_usize..12,
            deeds in prop::collection::vec((0_u8..3, 0_u8..5, any::<prop::sample::Index>()), 0..200),
        ) {
            let shares = Shares::new(places);
            let mut held: Vec<(u8, Share<u8>)> = Vec::new();
            let mut waiting: Vec<(u8, Waiting)> = Vec::new();
            for (deed, key, which) in deeds {
                match deed {
                    0 => match begin(&shares, key) {
                        Ok(share) => held.push((key, share)),
                        Err(entering) => waiting.push((key, entering)),
                    },
                    1 if !held.is_empty() => drop(held.swap_remove(which.index(held.len()))),
                    2 if !waiting.is_empty() => drop(waiting.swap_remove(which.index(waiting.len()))),
                    _ => (),
                }
                for (key, mut entering) in std::mem::take(&mut waiting) {
                    match poll(&mut entering) {
                        Some(share) => held.push((key, share)),
                        None => waiting.push((key, entering)),
                    }
                }
                let count = |key| held.iter().filter(|(other, _)| *other == key).count();
                prop_assert_eq!(shares.free(), places - held.len());
                for key in 0..5 {
                    prop_assert_eq!(shares.held_by(&key), count(key));
                }
                for (key, _) in &waiting {
                    prop_assert!(count(*key) >= shares.free());
                }
            }
            drop((held, waiting));
            prop_assert_eq!(shares.free(), places);
            prop_assert!(lock(&shares.0).holders.is_empty());
        }
    }
}
