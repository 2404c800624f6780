//! Memory held by bodies while they are read and used, bounded for the whole process.
//!
//! A client may hold a quarter of what is then still free. So one alone gets a fifth of everything,
//! each further one takes at most a fifth of what the others have left, and the next one always
//! finds some.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use metrics::Gauge;

/// No room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many request bodies are being received")]
pub struct Full;

/// A client may hold one part while this many are free.
const FREE_PARTS: usize = 4;

/// The bytes that the bodies of all clients may hold.
pub(crate) struct Memory {
    most: usize,
    holders: Mutex<Holders>,
    buffered: Gauge,
}

#[derive(Default)]
struct Holders {
    total: usize,
    by_client: HashMap<IpAddr, usize>,
}

impl Memory {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            holders: Mutex::default(),
            buffered: metrics::gauge!("waypost_http_body_bytes"),
        })
    }

    /// Memory reservation for one body of a client.
    pub(crate) fn room(this: &Arc<Self>, client: IpAddr) -> Held {
        Held {
            memory: Arc::clone(this),
            client,
            bytes: 0,
        }
    }

    fn take(&self, client: IpAddr, bytes: usize) -> Result<(), Full> {
        let mut holders = self.holders();
        if !holders.have_room(self.most, client, bytes) {
            metrics::counter!("waypost_http_bodies_refused_total").increment(1);
            return Err(Full);
        }
        *holders.by_client.entry(client).or_default() += bytes;
        holders.total += bytes;
        self.buffered.increment(as_metric(bytes));
        Ok(())
    }

    fn has_room(&self, client: IpAddr, bytes: usize) -> bool {
        self.holders().have_room(self.most, client, bytes)
    }

    fn give_back(&self, client: IpAddr, bytes: usize) {
        let mut holders = self.holders();
        holders.total = holders.total.saturating_sub(bytes);
        if let Some(held) = holders.by_client.get_mut(&client) {
            *held = held.saturating_sub(bytes);
            if *held == 0 {
                holders.by_client.remove(&client);
            }
        }
        self.buffered.decrement(as_metric(bytes));
    }

    fn holders(&self) -> MutexGuard<'_, Holders> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Holders {
    fn have_room(&self, most: usize, client: IpAddr, bytes: usize) -> bool {
        let held = self.by_client.get(&client).copied().unwrap_or(0);
        let free = most.saturating_sub(self.total.saturating_add(bytes));
        held.saturating_add(bytes).saturating_mul(FREE_PARTS) <= free
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a metric; no memory has 2^53 bytes"
)]
fn as_metric(bytes: usize) -> f64 {
    bytes as f64
}

/// The memory that one body has taken; given back when dropped.
pub struct Held {
    memory: Arc<Memory>,
    client: IpAddr,
    bytes: usize,
}

impl Held {
    /// Whether more bytes can be taken.
    pub fn can_grow(&self, bytes: usize) -> bool {
        self.memory.has_room(self.client, bytes)
    }

    /// Takes memory for more bytes, as they arrive.
    ///
    /// # Errors
    /// If none is left: this client, or all together, hold too much.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Full> {
        self.memory.take(self.client, bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Splits off the reservation for the given number of bytes, which is then independent.
    #[must_use]
    pub fn split_off(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self {
            memory: Arc::clone(&self.memory),
            client: self.client,
            bytes,
        }
    }

    /// Gives back all but the given number of bytes.
    pub fn shrink_to(&mut self, bytes: usize) {
        if let Some(freed) = self.bytes.checked_sub(bytes).filter(|freed| *freed > 0) {
            self.memory.give_back(self.client, freed);
            self.bytes = bytes;
        }
    }

    /// Gives back everything.
    pub(crate) fn clear(&mut self) {
        self.shrink_to(0);
    }

    /// Ties the reservation to its bytes: it is given back when the last reference is dropped.
    pub(crate) fn keep(self, bytes: Bytes) -> Bytes {
        if bytes.is_empty() {
            return bytes;
        }
        Bytes::from_owner(Kept { bytes, _room: self })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.clear();
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Held").field(&self.bytes).finish()
    }
}

/// Bytes and their reservation.
struct Kept {
    bytes: Bytes,
    _room: Held,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn client(n: u8) -> IpAddr {
        [192, 0, 2, n].into()
    }

    #[test]
    fn bytes_are_given_back_by_the_last_who_holds_them() {
        let memory = Memory::new(200);
        let mut room = Memory::room(&memory, client(1));
        room.grow(40).unwrap();
        let bytes = room.keep(Bytes::from(vec![0; 40]));
        let part = bytes.slice(..10);
        drop(bytes);
        assert_eq!(memory.holders().total, 40);
        drop(part);
        let holders = memory.holders();
        assert_eq!((holders.total, holders.by_client.len()), (0, 0));
    }

    #[test]
    fn one_client_alone_gets_a_fifth() {
        let memory = Memory::new(100);
        let mut greedy: Vec<_> = (0..100).map(|_| Memory::room(&memory, client(1))).collect();
        let granted = greedy.iter_mut().filter_map(|room| room.grow(1).ok());
        assert_eq!(granted.count(), 20);
        let mut modest = Memory::room(&memory, client(2));
        assert_eq!(modest.grow(16), Ok(()));
    }

    proptest! {
        /// Whatever the greedy clients do, the bound holds and a newcomer finds memory.
        #[test]
        fn the_bound_holds_and_something_stays_free(
            wishes in proptest::collection::vec((1_u8..20, 1_usize..2_000), 1..400),
        ) {
            let memory = Memory::new(10_000);
            let mut rooms = Vec::new();
            for (who, bytes) in wishes {
                let mut room = Memory::room(&memory, client(who));
                if room.grow(bytes).is_ok() {
                    rooms.push(room);
                }
            }
            prop_assert!(memory.holders().total < 10_000);
            // Nineteen greedy clients leave four fifths to the power of nineteen, of which the next
            // one gets a fifth.
            let mut newcomer = Memory::room(&memory, client(200));
            prop_assert_eq!(newcomer.grow(28), Ok(()));
            drop((rooms, newcomer));
            prop_assert_eq!(memory.holders().total, 0);
        }
    }
}
