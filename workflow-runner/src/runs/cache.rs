//! Recently used values, up to a number of bytes that organizations share.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use schemas::OrgId;

use super::measure;

/// Values unused for this long are dropped before any others.
const IDLE: Duration = Duration::from_mins(1);

/// Values by key. If there is no room for another, values no longer used are dropped first, then
/// the least recently used of the organization that holds most: one that uses more than there is
/// room for displaces only its own.
#[derive(Debug)]
pub(super) struct Cache<K, V> {
    /// The name in its metric.
    name: &'static str,
    room: usize,
    held: Mutex<Held<K, V>>,
}

#[derive(Debug)]
struct Held<K, V> {
    by_key: HashMap<K, Entry<V>>,
    shares: HashMap<OrgId, Share<K>>,
    bytes: usize,
    uses: u64,
}

#[derive(Debug)]
struct Entry<V> {
    value: Arc<V>,
    bytes: usize,
    org: OrgId,
    /// Its last use, counted, and when that was.
    used: u64,
    at: Instant,
}

/// What one organization holds.
#[derive(Debug)]
struct Share<K> {
    by_use: BTreeMap<u64, K>,
    bytes: usize,
}

impl<K: Clone + Eq + Hash, V> Cache<K, V> {
    /// Holds up to `room` bytes; a single value larger than that is still held, alone.
    pub(super) fn new(name: &'static str, room: usize) -> Self {
        let held = Held {
            by_key: HashMap::new(),
            shares: HashMap::new(),
            bytes: 0,
            uses: 0,
        };
        let held = Mutex::new(held);
        Self { name, room, held }
    }

    pub(super) fn get<Q>(&self, key: &Q) -> Option<Arc<V>>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.lock().get(key, Instant::now())
    }

    /// Stores an organization's value of the given size in bytes; returns the one that is held,
    /// which may be another's that came first.
    pub(super) fn put(&self, org: &OrgId, key: K, value: V, bytes: usize) -> Arc<V> {
        self.put_at(org, key, (value, bytes), Instant::now())
    }

    fn put_at(&self, org: &OrgId, key: K, (value, bytes): (V, usize), now: Instant) -> Arc<V> {
        let mut held = self.lock();
        if let Some(entry) = held.by_key.get(&key) {
            return Arc::clone(&entry.value);
        }
        held.make_room(self.room.saturating_sub(bytes), now);
        let value = Arc::new(value);
        held.add(org, key, (Arc::clone(&value), bytes), now);
        measure::compiled(self.name, held.bytes);
        value
    }

    fn lock(&self) -> MutexGuard<'_, Held<K, V>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash, V> Held<K, V> {
    fn get<Q>(&mut self, key: &Q, now: Instant) -> Option<Arc<V>>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let entry = self.by_key.get_mut(key)?;
        if let Some(share) = self.shares.get_mut(&entry.org)
            && let Some(key) = share.by_use.remove(&entry.used)
        {
            self.uses += 1;
            (entry.used, entry.at) = (self.uses, now);
            share.by_use.insert(entry.used, key);
        }
        Some(Arc::clone(&entry.value))
    }

    fn add(&mut self, org: &OrgId, key: K, (value, bytes): (Arc<V>, usize), now: Instant) {
        self.uses += 1;
        self.bytes += bytes;
        let share = self.shares.entry(org.clone()).or_insert_with(|| Share {
            by_use: BTreeMap::new(),
            bytes: 0,
        });
        share.bytes += bytes;
        share.by_use.insert(self.uses, key.clone());
        let entry = Entry {
            value,
            bytes,
            org: org.clone(),
            used: self.uses,
            at: now,
        };
        self.by_key.insert(key, entry);
    }

    /// Scans all organizations for each value that is dropped, which costs little compared with
    /// compiling the new one.
    fn make_room(&mut self, room: usize, now: Instant) {
        while self.bytes > room
            && let Some(org) = self.next_to_lose(now).cloned()
        {
            self.drop_oldest_of(&org);
        }
    }

    /// The organization that loses its least recently used value.
    fn next_to_lose(&self, now: Instant) -> Option<&OrgId> {
        let oldest = self.shares.iter().filter_map(|(org, share)| {
            let (used, key) = share.by_use.first_key_value()?;
            Some((used, org, key))
        });
        let (_, org, key) = oldest.min_by_key(|(used, ..)| **used)?;
        let rests = self
            .by_key
            .get(key)
            .map(|entry| now.saturating_duration_since(entry.at));
        if rests.is_some_and(|rests| rests >= IDLE) {
            return Some(org);
        }
        let most = self.shares.iter().max_by_key(|(_, share)| share.bytes);
        most.map(|(org, _)| org)
    }

    fn drop_oldest_of(&mut self, org: &OrgId) {
        let Some(share) = self.shares.get_mut(org) else {
            return;
        };
        if let Some((_, key)) = share.by_use.pop_first()
            && let Some(gone) = self.by_key.remove(&key)
        {
            share.bytes -= gone.bytes;
            self.bytes -= gone.bytes;
        }
        if share.by_use.is_empty() {
            self.shares.remove(org);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn org(name: &str) -> OrgId {
        OrgId::from(name)
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let (cache, org) = (Cache::new("test", 100), org("o"));
        cache.put(&org, "a", 1, 40);
        cache.put(&org, "b", 2, 40);
        assert_eq!(cache.get("a").as_deref(), Some(&1));
        cache.put(&org, "c", 3, 40);
        assert!(cache.get("b").is_none());
        assert_eq!(cache.get("a").as_deref(), Some(&1));
        assert_eq!(*cache.put(&org, "a", 9, 40), 1);
        cache.put(&org, "large", 4, 1_000);
        assert_eq!(cache.get("large").as_deref(), Some(&4));
        assert!(cache.get("a").is_none() && cache.get("c").is_none());
    }

    #[test]
    fn who_uses_more_than_there_is_room_for_drives_out_its_own() {
        let (cache, now) = (Cache::new("test", 100), Instant::now());
        cache.put_at(&org("few"), 1, ((), 30), now);
        for key in 10..50 {
            cache.put_at(&org("many"), key, ((), 10), now);
        }
        assert!(cache.get(&1).is_some());
        assert!(cache.get(&49).is_some() && cache.get(&10).is_none());
    }

    #[test]
    fn values_that_are_no_longer_used_make_room_for_new_ones() {
        let (cache, start) = (Cache::new("test", 100), Instant::now());
        for key in 0..10 {
            cache.put_at(&org(&format!("idle{key}")), key, ((), 10), start);
        }
        for key in 10..20 {
            cache.put_at(&org("busy"), key, ((), 10), start + IDLE);
        }
        assert!((0..10).all(|key| cache.get(&key).is_none()));
        assert!((10..20).all(|key| cache.get(&key).is_some()));
    }

    proptest! {
        #[test]
        fn it_holds_no_more_than_it_has_room_for(
            puts in proptest::collection::vec((0_u8..20, 0_u8..4, 1_usize..60), 0..200),
        ) {
            let cache = Cache::new("test", 100);
            for (key, of, bytes) in puts {
                cache.get(&key);
                cache.put(&org(&of.to_string()), key, (), bytes);
                let held = cache.lock();
                let sum: usize = held.by_key.values().map(|entry| entry.bytes).sum();
                prop_assert_eq!(sum, held.bytes);
                let shares = held.shares.values();
                let (count, bytes) = shares.fold((0, 0), |(count, bytes), share| {
                    (count + share.by_use.len(), bytes + share.bytes)
                });
                prop_assert_eq!((count, bytes), (held.by_key.len(), sum));
                prop_assert!(sum <= 100);
            }
        }
    }
}
