//! The queue for hashing passwords, which only few can do at once: every client is served in time,
//! however many requests a stranger sends.
//!
//! Known clients have places of their own. Strangers have as many, in two lanes: sign-ins and
//! registrations. The lanes take turns, and so do the networks within a lane. If no client waits in
//! one lane, the other gets all its places.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::network::Network;

/// Why a client waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Lane {
    /// Signed in from there before.
    Known,
    /// Signs in, and has not been seen there.
    SignIn,
    /// Opens an account.
    Registration,
}

impl Lane {
    pub(super) const fn is_known(self) -> bool {
        matches!(self, Self::Known)
    }

    /// Its name in metrics.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Known => "known",
            Self::SignIn => "sign_in",
            Self::Registration => "registration",
        }
    }
}

/// A client that wants a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visitor {
    pub(crate) lane: Lane,
    pub(crate) network: Network,
}

/// Why there is no turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoTurn {
    /// Too many wait from this network: 429.
    TooManyOfOne,
    /// Too many wait altogether: 503.
    TooMany,
    /// It did not come in time: 503.
    Late,
}

impl NoTurn {
    /// Its name in metrics.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::TooManyOfOne => "network",
            Self::TooMany => "full",
            Self::Late => "late",
        }
    }
}

/// How many clients may wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// In each lane; half as many registrations.
    pub(super) in_lane: usize,
    /// Of each network in a lane.
    pub(super) of_network: usize,
}

/// Places, and the clients that wait for them. Clones share state.
#[derive(Clone, Debug)]
pub(super) struct PasswordQueue(Arc<Mutex<State>>);

/// A held place; dropping it gives it back.
#[must_use]
#[derive(Debug)]
pub(super) struct Turn {
    queue: PasswordQueue,
    is_known: bool,
}

#[derive(Debug)]
struct State {
    room: Room,
    known: Places<1>,
    /// For sign-ins and registrations.
    strangers: Places<2>,
}

/// Places for which some lanes take turns.
#[derive(Debug)]
struct Places<const LANES: usize> {
    free: usize,
    lanes: [Queue; LANES],
    /// Which lane comes first.
    next: usize,
}

/// A lane: a queue for each network, and the networks in turn.
#[derive(Debug, Default)]
struct Queue {
    of: HashMap<Network, VecDeque<oneshot::Sender<Turn>>>,
    networks: VecDeque<Network>,
}

impl PasswordQueue {
    /// Creates `places` for known clients, and as many for strangers.
    pub(super) fn new(places: usize, room: Room) -> Self {
        let state = State {
            room,
            known: Places::new(places),
            strangers: Places::new(places),
        };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Waits for a turn. A caller that goes away meanwhile gives up its turn.
    pub(super) async fn enter(&self, visitor: Visitor) -> Result<Turn, NoTurn> {
        let coming = {
            let mut state = self.state();
            let is_known = visitor.lane.is_known();
            if state.take_free(is_known) {
                let queue = self.clone();
                return Ok(Turn { queue, is_known });
            }
            state.queue(visitor)?
        };
        // A client that is pushed out had more of its own network before it than others have.
        coming.await.map_err(|_| NoTurn::TooManyOfOne)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let is_known = self.is_known;
        let mut state = self.queue.state();
        state.give_back(is_known);
        while let Some(waiting) = state.next(is_known) {
            // Never under the lock: a turn that cannot be handed over is dropped, which takes the
            // lock again.
            drop(state);
            let queue = self.queue.clone();
            drop(waiting.send(Self { queue, is_known }));
            state = self.queue.state();
        }
    }
}

impl State {
    fn queue(&mut self, visitor: Visitor) -> Result<oneshot::Receiver<Turn>, NoTurn> {
        let Room {
            in_lane,
            of_network,
        } = self.room;
        let (queue, most) = match visitor.lane {
            Lane::Known => (&mut self.known.lanes[0], in_lane),
            Lane::SignIn => (&mut self.strangers.lanes[0], in_lane),
            Lane::Registration => (&mut self.strangers.lanes[1], in_lane.div_ceil(2)),
        };
        queue.take(visitor.network, most, of_network)
    }

    fn take_free(&mut self, is_known: bool) -> bool {
        if is_known {
            self.known.take_free()
        } else {
            self.strangers.take_free()
        }
    }

    fn give_back(&mut self, is_known: bool) {
        if is_known {
            self.known.free += 1;
        } else {
            self.strangers.free += 1;
        }
    }

    /// Takes a free place for the next client.
    fn next(&mut self, is_known: bool) -> Option<oneshot::Sender<Turn>> {
        if is_known {
            self.known.next()
        } else {
            self.strangers.next()
        }
    }
}

impl<const LANES: usize> Places<LANES> {
    fn new(places: usize) -> Self {
        Self {
            free: places.max(1),
            lanes: std::array::from_fn(|_| Queue::default()),
            next: 0,
        }
    }

    fn take_free(&mut self) -> bool {
        let is_free = self.free > 0;
        self.free -= usize::from(is_free);
        is_free
    }

    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        if self.free == 0 {
            return None;
        }
        for _ in 0..LANES {
            let lane = self.next;
            self.next = (lane + 1) % LANES;
            if let Some(next) = self.lanes[lane].next() {
                self.free -= 1;
                return Some(next);
            }
        }
        None
    }
}

impl Queue {
    fn take(
        &mut self,
        network: Network,
        most: usize,
        of_network: usize,
    ) -> Result<oneshot::Receiver<Turn>, NoTurn> {
        let waiting = |queue: &Self| queue.of.get(&network).map_or(0, VecDeque::len);
        if waiting(self) >= of_network || self.waiting() >= most {
            self.sweep();
        }
        let mine = waiting(self);
        if mine >= of_network {
            return Err(NoTurn::TooManyOfOne);
        }
        if self.waiting() >= most && !self.push_out(mine + 1) {
            return Err(NoTurn::TooMany);
        }
        let (sender, coming) = oneshot::channel();
        let queue = self.of.entry(network).or_default();
        if queue.is_empty() {
            self.networks.push_back(network);
        }
        queue.push_back(sender);
        Ok(coming)
    }

    fn waiting(&self) -> usize {
        self.of.values().map(VecDeque::len).sum()
    }

    /// Makes room for the `nth` of a network: drops the last of the network that has the most, if
    /// that has more.
    fn push_out(&mut self, nth: usize) -> bool {
        let longest = self.of.values_mut().max_by_key(|queue| queue.len());
        let longer = longest.filter(|queue| queue.len() > nth);
        longer.and_then(VecDeque::pop_back).is_some()
    }

    fn sweep(&mut self) {
        self.of.retain(|_, queue| {
            queue.retain(|waiting| !waiting.is_closed());
            !queue.is_empty()
        });
        let of = &self.of;
        self.networks.retain(|network| of.contains_key(network));
    }

    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        while let Some(network) = self.networks.pop_front() {
            let Some(queue) = self.of.get_mut(&network) else {
                continue;
            };
            let next = queue.pop_front();
            if queue.is_empty() {
                self.of.remove(&network);
            } else {
                self.networks.push_back(network);
            }
            if let Some(next) = next.filter(|next| !next.is_closed()) {
                return Some(next);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
