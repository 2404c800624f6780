//! Turns at what only few can do at once: everybody comes in time, however many a stranger sends.
//!
//! Who waits stands in one of three lanes, and there in the queue of their own network. Those known
//! from before have every other turn; the other two lanes take turns at the rest, and within a lane
//! the networks do. No lane keeps a place free: where nobody else waits, one gets them all.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::network::Network;

/// On what ground somebody waits.
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
    /// How metrics name it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Known => "known",
            Self::SignIn => "sign_in",
            Self::Registration => "registration",
        }
    }
}

/// Who wants a turn.
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
}

impl NoTurn {
    /// How metrics name it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::TooManyOfOne => "network",
            Self::TooMany => "full",
        }
    }
}

/// How many may wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// In each lane; of those who open accounts, half as many.
    pub(super) in_lane: usize,
    /// Of each network in a lane.
    pub(super) of_network: usize,
}

/// Places, and those who wait for them. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Turns(Arc<Mutex<State>>);

/// A place that is held; dropping it gives it back.
#[must_use]
#[derive(Debug)]
pub(super) struct Turn(Turns);

#[derive(Debug)]
struct State {
    free: usize,
    room: Room,
    known: Queue,
    /// Those who sign in, and those who open accounts.
    others: [Queue; 2],
    /// Whether the last turn was for somebody known.
    was_known: bool,
    /// Which of the others comes first.
    next: usize,
}

/// A lane: a queue for each network, and the networks by turns.
#[derive(Debug, Default)]
struct Queue {
    of: HashMap<Network, VecDeque<oneshot::Sender<Turn>>>,
    networks: VecDeque<Network>,
}

impl Turns {
    pub(super) fn new(places: usize, room: Room) -> Self {
        Self(Arc::new(Mutex::new(State {
            free: places.max(1),
            room,
            known: Queue::default(),
            others: [Queue::default(), Queue::default()],
            was_known: false,
            next: 0,
        })))
    }

    /// Waits for a turn; whoever goes away meanwhile gives up theirs.
    pub(super) async fn enter(&self, visitor: Visitor) -> Result<Turn, NoTurn> {
        let coming = {
            let mut state = self.state();
            if state.free > 0 {
                state.free -= 1;
                return Ok(Turn(self.clone()));
            }
            state.queue(visitor)?
        };
        // Who is pushed out had more before them of their own network than others have.
        coming.await.map_err(|_| NoTurn::TooManyOfOne)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.free += 1;
        while state.free > 0
            && let Some(waiting) = state.next()
        {
            state.free -= 1;
            // Never under the lock: what cannot be handed over is dropped, and that takes it again.
            drop(state);
            drop(waiting.send(Self(self.0.clone())));
            state = self.0.state();
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
            Lane::Known => (&mut self.known, in_lane),
            Lane::SignIn => (&mut self.others[0], in_lane),
            Lane::Registration => (&mut self.others[1], in_lane.div_ceil(2)),
        };
        queue.take(visitor.network, most, of_network)
    }

    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        let known = |state: &mut Self| {
            let next = state.known.next();
            state.was_known |= next.is_some();
            next
        };
        if !self.was_known
            && let Some(next) = known(self)
        {
            return Some(next);
        }
        self.was_known = false;
        for _ in 0..2 {
            let lane = self.next;
            self.next = 1 - lane;
            if let Some(next) = self.others[lane].next() {
                return Some(next);
            }
        }
        known(self)
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

    /// Makes room for the `nth` of a network: the last of the network that has most goes, if that is
    /// more.
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
