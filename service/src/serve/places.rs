//! Limits of connections: in total, and per address. Behind a trusted proxy, each request counts as
//! a connection of its client.
//!
//! If all places are taken, an idle connection gives its place to a new one: the one that has been
//! idle longest, of the address that holds the most. A place in use is never taken away.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metrics::Gauge;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::life::Life;
use crate::client::{Networks, one_client};

/// How many idle connections are searched for at once, and how often: strangers may connect as
/// often as they like.
const IDLE_AT_ONCE: usize = 256;
const LOOKED_AGAIN: Duration = Duration::from_millis(50);

/// The reason for refusing a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The process has reached its limit.
    Full,
    /// The address has used up its share.
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

/// The connections of a process.
pub(super) struct Places {
    most: usize,
    most_per_address: usize,
    /// Proxies stand in for many clients.
    proxies: Networks,
    /// How long a connection must have been idle before it is shed.
    min_idle: Duration,
    taken: Mutex<Taken>,
    open: Gauge,
}

#[derive(Default)]
struct Taken {
    connections: HashMap<u64, Connection>,
    next: u64,
    by_address: HashMap<IpAddr, usize>,
    /// The connections found idle by the last search; the first to be shed is at the end.
    idle: Vec<u64>,
    looked: Option<Instant>,
}

/// An accepted connection.
struct Connection {
    /// The address that it is counted under.
    address: Option<IpAddr>,
    life: Arc<Life>,
    /// Cancelled once it has given its place away.
    ended: CancellationToken,
}

impl Places {
    pub(super) fn new(
        most: usize,
        most_per_address: usize,
        proxies: Networks,
        min_idle: Duration,
    ) -> Arc<Self> {
        Arc::new(Self {
            most,
            most_per_address,
            proxies,
            min_idle,
            taken: Mutex::default(),
            open: metrics::gauge!("waypost_http_connections"),
        })
    }

    /// Takes a place for a connection from this address.
    pub(super) fn take(
        self: &Arc<Self>,
        peer: IpAddr,
        life: &Arc<Life>,
    ) -> Result<ConnectionPlace, Refused> {
        let address = self.counted(peer);
        let mut taken = self.taken();
        let (held, free) = (taken.held(address), self.free(&taken));
        if address.is_some() && held >= self.most_per_address {
            return Err(Refused::Share);
        }
        // No address gets more places than it leaves to the others, unless it replaces a connection
        // of an address that has more.
        let has_room = free > 0 && (address.is_none() || held < free);
        if !has_room {
            let refused = if free == 0 {
                Refused::Full
            } else {
                Refused::Share
            };
            let idle = taken.idle(held, self.min_idle).ok_or(refused)?;
            self.end(&mut taken, idle);
            metrics::counter!("waypost_http_connections_shed_total").increment(1);
        }
        let id = taken.next;
        taken.next += 1;
        if let Some(address) = address {
            *taken.by_address.entry(address).or_default() += 1;
        }
        let ended = CancellationToken::new();
        let connection = Connection {
            address,
            life: Arc::clone(life),
            ended: ended.clone(),
        };
        taken.connections.insert(id, connection);
        self.open.increment(1);
        Ok(ConnectionPlace {
            places: Arc::clone(self),
            id,
            ended,
        })
    }

    fn free(&self, taken: &Taken) -> usize {
        self.most.saturating_sub(taken.connections.len())
    }

    /// Takes the place from a connection, which then ends.
    fn end(&self, taken: &mut Taken, id: u64) {
        let Some(connection) = taken.connections.remove(&id) else {
            return;
        };
        if let Some(address) = connection.address {
            taken.less_of(address);
        }
        connection.ended.cancel();
        self.open.decrement(1);
    }

    /// Counts a request whose client is not the peer of its connection.
    pub(super) fn take_for(
        self: &Arc<Self>,
        client: IpAddr,
        peer: IpAddr,
    ) -> Result<Option<ClientCount>, Refused> {
        if client == peer.to_canonical() {
            return Ok(None);
        }
        let Some(address) = self.counted(client) else {
            return Ok(None);
        };
        self.count_of(&mut self.taken(), address).map(Some)
    }

    fn count_of(
        self: &Arc<Self>,
        taken: &mut Taken,
        address: IpAddr,
    ) -> Result<ClientCount, Refused> {
        let (held, free) = (taken.held(Some(address)), self.free(taken));
        if held >= self.most_per_address.min(free) {
            return Err(Refused::Share);
        }
        taken.by_address.insert(address, held + 1);
        Ok(ClientCount {
            places: Arc::clone(self),
            address,
        })
    }

    /// The address that a connection is counted under. Proxies and this machine are not counted:
    /// anyone may be behind them.
    fn counted(&self, peer: IpAddr) -> Option<IpAddr> {
        let peer = peer.to_canonical();
        let exempt = peer.is_loopback() || self.proxies.contains(peer);
        (!exempt).then(|| one_client(peer))
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// How many places an address holds; 0 if it is not counted.
    fn held(&self, address: Option<IpAddr>) -> usize {
        let held = address.and_then(|address| self.by_address.get(&address));
        held.copied().unwrap_or(0)
    }

    /// The first connection to be shed for an address that holds `to` places.
    fn idle(&mut self, to: usize, min_idle: Duration) -> Option<u64> {
        loop {
            let Some(id) = self.idle.last().copied() else {
                let looked = self.looked.map(|at| at.elapsed());
                if looked.is_some_and(|ago| ago < LOOKED_AGAIN) {
                    return None;
                }
                self.look_for_idle(min_idle);
                self.idle.last()?;
                continue;
            };
            let connection = self.connections.get(&id);
            if let Some(connection) = connection.filter(|one| one.is_idle(min_idle)) {
                let held = self.held(connection.address);
                // An address that holds none takes precedence over another's second one.
                let yields = to == 0 || held > to + 1;
                return yields.then(|| self.idle.pop()).flatten();
            }
            self.idle.pop();
        }
    }

    fn look_for_idle(&mut self, min_idle: Duration) {
        let connections = self.connections.iter();
        let idle = connections.filter(|(_, connection)| connection.is_idle(min_idle));
        let mut found: Vec<_> = idle
            .map(|(id, connection)| {
                let held = self.held(connection.address);
                (Reverse(held), connection.life.idle_since(), *id)
            })
            .collect();
        if found.len() > IDLE_AT_ONCE {
            found.select_nth_unstable(IDLE_AT_ONCE);
            found.truncate(IDLE_AT_ONCE);
        }
        found.sort_unstable();
        self.idle = found.into_iter().rev().map(|(.., id)| id).collect();
        self.looked = Some(Instant::now());
    }

    fn less_of(&mut self, address: IpAddr) {
        if let Some(held) = self.by_address.get_mut(&address) {
            *held = held.saturating_sub(1);
            if *held == 0 {
                self.by_address.remove(&address);
            }
        }
    }
}

impl Connection {
    /// Whether it has been idle for at least this long.
    fn is_idle(&self, min_idle: Duration) -> bool {
        let life = &self.life;
        !life.is_busy() && !life.is_upgraded() && life.idle_since().elapsed() >= min_idle
    }
}

/// A connection's place, given back when dropped.
pub(super) struct ConnectionPlace {
    places: Arc<Places>,
    id: u64,
    ended: CancellationToken,
}

impl ConnectionPlace {
    /// Cancelled when the place was given to another connection.
    pub(super) fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.places.end(&mut self.places.taken(), self.id);
    }
}

/// Counts as one connection of an address, until it is dropped.
pub(super) struct ClientCount {
    places: Arc<Places>,
    address: IpAddr,
}

impl Drop for ClientCount {
    fn drop(&mut self) {
        self.places.taken().less_of(self.address);
    }
}

#[cfg(test)]
mod tests;
