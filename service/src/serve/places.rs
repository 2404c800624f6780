//! Who may be connected: so many in all, and so many from one address. Of those behind a proxy that
//! is believed, each request counts as a connection of its client's.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metrics::Gauge;

use crate::client::{Networks, one_client};

/// Why a connection is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The process has as many as it takes.
    Full,
    /// The address has its share.
    Share,
}

impl Refused {
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Full => "process",
            Self::Share => "address",
        }
    }
}

/// The connections that a process takes.
pub(super) struct Places {
    most: usize,
    most_per_address: usize,
    /// Proxies stand for many clients.
    proxies: Networks,
    taken: Mutex<Taken>,
    open: Gauge,
}

#[derive(Default)]
struct Taken {
    total: usize,
    by_address: HashMap<IpAddr, usize>,
}

impl Places {
    pub(super) fn new(most: usize, most_per_address: usize, proxies: Networks) -> Arc<Self> {
        Arc::new(Self {
            most,
            most_per_address,
            proxies,
            taken: Mutex::default(),
            open: metrics::gauge!("waypost_http_connections"),
        })
    }

    /// A place for a connection from this address.
    pub(super) fn take(self: &Arc<Self>, peer: IpAddr) -> Result<Place, Refused> {
        let mut taken = self.taken();
        let free = self.most.saturating_sub(taken.total);
        if free == 0 {
            return Err(Refused::Full);
        }
        let share = match self.counted(peer) {
            Some(address) => Some(self.share_of(&mut taken, address)?),
            None => None,
        };
        taken.total += 1;
        self.open.increment(1);
        Ok(Place {
            places: Arc::clone(self),
            _share: share,
        })
    }

    /// Counts a request whose client is another one than the other end of its connection.
    pub(super) fn take_for(
        self: &Arc<Self>,
        client: IpAddr,
        peer: IpAddr,
    ) -> Result<Option<Share>, Refused> {
        if client == peer.to_canonical() {
            return Ok(None);
        }
        let Some(address) = self.counted(client) else {
            return Ok(None);
        };
        self.share_of(&mut self.taken(), address).map(Some)
    }

    fn share_of(self: &Arc<Self>, taken: &mut Taken, address: IpAddr) -> Result<Share, Refused> {
        let free = self.most.saturating_sub(taken.total);
        let held = taken.by_address.get(&address).copied().unwrap_or(0);
        // No address gets more than it leaves to the others.
        if held >= self.most_per_address.min(free) {
            return Err(Refused::Share);
        }
        taken.by_address.insert(address, held + 1);
        Ok(Share {
            places: Arc::clone(self),
            address,
        })
    }

    /// What a connection is counted under. Proxies and whoever is on this machine are not: behind
    /// them may be anybody.
    fn counted(&self, peer: IpAddr) -> Option<IpAddr> {
        let peer = peer.to_canonical();
        let exempt = peer.is_loopback() || self.proxies.contains(peer);
        (!exempt).then(|| one_client(peer))
    }

    fn give_back(&self, address: IpAddr) {
        let mut taken = self.taken();
        if let Some(held) = taken.by_address.get_mut(&address) {
            *held = held.saturating_sub(1);
            if *held == 0 {
                taken.by_address.remove(&address);
            }
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's place, given back when dropped.
pub(super) struct Place {
    places: Arc<Places>,
    _share: Option<Share>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.total = taken.total.saturating_sub(1);
        self.places.open.decrement(1);
    }
}

/// What counts as one connection of an address, until it is dropped.
pub(super) struct Share {
    places: Arc<Places>,
    address: IpAddr,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.places.give_back(self.address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(most: usize, most_per_address: usize) -> Arc<Places> {
        Places::new(most, most_per_address, "10.0.0.0/8".parse().unwrap())
    }

    fn taken_from(places: &Arc<Places>, address: &str) -> (Vec<Place>, Refused) {
        let address = address.parse().unwrap();
        let mut taken = Vec::new();
        loop {
            match places.take(address) {
                Ok(place) => taken.push(place),
                Err(refused) => return (taken, refused),
            }
        }
    }

    #[test]
    fn an_address_has_its_share_and_others_theirs() {
        let places = places(100, 10);
        let (one, refused) = taken_from(&places, "192.0.2.1");
        assert_eq!((one.len(), refused), (10, Refused::Share));
        assert!(places.take("192.0.2.2".parse().unwrap()).is_ok());
        drop(one);
        assert!(places.take("192.0.2.1".parse().unwrap()).is_ok());
        assert_eq!(places.taken().total, 0);
        assert!(places.taken().by_address.is_empty());
    }

    #[test]
    fn however_many_are_greedy_the_next_finds_a_place() {
        let places = places(1_000, 1_000);
        let mut all = Vec::new();
        for n in 1..=8 {
            let (taken, refused) = taken_from(&places, &format!("192.0.2.{n}"));
            assert_eq!(refused, Refused::Share);
            assert!(!taken.is_empty());
            all.push(taken);
        }
        assert_eq!(all[0].len(), 500);
        assert!(places.take("192.0.2.9".parse().unwrap()).is_ok());
    }

    #[test]
    fn a_v6_network_is_one_address() {
        let places = places(100, 10);
        let (_one, _) = taken_from(&places, "2001:db8:1:2::1");
        let neighbour = places.take("2001:db8:1:2:ffff::1".parse().unwrap());
        assert_eq!(neighbour.err(), Some(Refused::Share));
    }

    #[test]
    fn behind_a_proxy_a_clients_requests_are_counted() {
        let places = places(100, 2);
        let proxy = "10.1.2.3".parse().unwrap();
        let request = |client: &str| places.take_for(client.parse().unwrap(), proxy);
        let held: Vec<_> = (0..2).map(|_| request("192.0.2.1").unwrap()).collect();
        assert_eq!(request("192.0.2.1").err(), Some(Refused::Share));
        assert!(request("192.0.2.2").is_ok_and(|share| share.is_some()));
        assert!(request("10.1.2.3").is_ok_and(|share| share.is_none()));
        drop(held);
        assert!(request("192.0.2.1").is_ok());
    }

    #[test]
    fn proxies_and_this_machine_are_bounded_by_the_process_alone() {
        for address in ["10.1.2.3", "127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            let (taken, refused) = taken_from(&places(100, 10), address);
            assert_eq!((taken.len(), refused), (100, Refused::Full), "{address}");
        }
    }
}
