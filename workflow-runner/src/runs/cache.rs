//! What was used lately, up to a number of bytes.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::measure;

/// Values by key; the one that was not used for longest goes first.
#[derive(Debug)]
pub(super) struct Cache<K, V> {
    /// What its metric calls it.
    name: &'static str,
    room: usize,
    held: Mutex<Held<K, V>>,
}

#[derive(Debug)]
struct Held<K, V> {
    by_key: HashMap<K, Entry<V>>,
    by_use: BTreeMap<u64, K>,
    bytes: usize,
    uses: u64,
}

#[derive(Debug)]
struct Entry<V> {
    value: Arc<V>,
    bytes: usize,
    used: u64,
}

impl<K: Clone + Eq + Hash, V> Cache<K, V> {
    /// Holds so many bytes; one value more than that is held all the same, alone.
    pub(super) fn new(name: &'static str, room: usize) -> Self {
        let held = Held {
            by_key: HashMap::new(),
            by_use: BTreeMap::new(),
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
        let held = &mut *self.lock();
        let entry = held.by_key.get_mut(key)?;
        if let Some(key) = held.by_use.remove(&entry.used) {
            held.uses += 1;
            entry.used = held.uses;
            held.by_use.insert(held.uses, key);
        }
        Some(Arc::clone(&entry.value))
    }

    /// Holds a value that takes so many bytes; gives back the one that is held, which may be
    /// another's that came first.
    pub(super) fn put(&self, key: K, value: V, bytes: usize) -> Arc<V> {
        let held = &mut *self.lock();
        if let Some(entry) = held.by_key.get(&key) {
            return Arc::clone(&entry.value);
        }
        held.bytes += bytes;
        while held.bytes > self.room
            && let Some((_, oldest)) = held.by_use.pop_first()
        {
            if let Some(gone) = held.by_key.remove(&oldest) {
                held.bytes -= gone.bytes;
            }
        }
        held.uses += 1;
        let (value, used) = (Arc::new(value), held.uses);
        held.by_use.insert(used, key.clone());
        let entry = Entry {
            value: Arc::clone(&value),
            bytes,
            used,
        };
        held.by_key.insert(key, entry);
        measure::compiled(self.name, held.bytes);
        value
    }

    fn lock(&self) -> MutexGuard<'_, Held<K, V>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let cache = Cache::new("test", 100);
        cache.put("a", 1, 40);
        cache.put("b", 2, 40);
        assert_eq!(cache.get("a").as_deref(), Some(&1));
        cache.put("c", 3, 40);
        assert!(cache.get("b").is_none());
        assert_eq!(cache.get("a").as_deref(), Some(&1));
        assert_eq!(*cache.put("a", 9, 40), 1);
        cache.put("large", 4, 1_000);
        assert_eq!(cache.get("large").as_deref(), Some(&4));
        assert!(cache.get("a").is_none() && cache.get("c").is_none());
    }

    proptest! {
        #[test]
        fn it_holds_no_more_than_it_has_room_for(puts in proptest::collection::vec((0_u8..20, 1_usize..60), 0..200)) {
            let cache = Cache::new("test", 100);
            for (key, bytes) in puts {
                cache.get(&key);
                cache.put(key, (), bytes);
                let held = cache.lock();
                let sum: usize = held.by_key.values().map(|entry| entry.bytes).sum();
                prop_assert_eq!(sum, held.bytes);
                prop_assert_eq!(held.by_key.len(), held.by_use.len());
                prop_assert!(sum <= 100);
            }
        }
    }
}
