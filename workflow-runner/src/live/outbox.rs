//! The queue of one subscription to persons' events.
//!
//! A reader that is too slow for all positions gets the newest of each person instead of an ever
//! longer queue. Nothing else is left out: a reader that does not even take crossings and calls for
//! help is given up.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::Arc;

use schemas::AccountId;
use tokio::time::Instant;

use super::channel::Channel;
use super::ring::LiveEvent;
use super::visibility::Visibility;

/// Positions that may wait before only the newest of each person are kept.
const MAX_POSITIONS: usize = 512;
/// Other events that may wait before the reader is given up.
const MAX_OTHERS: usize = 4_096;

/// An event of a person, encoded once for any number of viewers.
#[derive(Debug)]
pub(super) struct Fact {
    pub(super) visibility: Visibility,
    pub(super) event: LiveEvent,
}

/// A fact on its way to a subscription.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) fact: Arc<Fact>,
    /// The time as of which its audience was judged by everything in the log.
    pub(super) settled: Option<Instant>,
}

/// Positions that were left out: those after `from` and up to `to` for which a newer one of the
/// same person follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Conflated {
    pub(super) from: u64,
    pub(super) to: u64,
}

/// The queue of one subscription.
#[derive(Debug)]
pub(super) struct Outbox {
    channel: Channel,
    entries: VecDeque<Entry>,
    conflated: Option<Conflated>,
    /// How many may wait before positions are left out again.
    bound: usize,
    hopeless: bool,
}

impl Outbox {
    pub(super) fn new(channel: Channel) -> Self {
        Self {
            channel,
            entries: VecDeque::new(),
            conflated: None,
            bound: MAX_POSITIONS,
            hopeless: false,
        }
    }

    /// The channel whose events it takes.
    pub(super) fn channel(&self) -> Channel {
        self.channel
    }

    /// Takes the next event in the order of the log.
    pub(super) fn push(&mut self, entry: Entry) {
        if self.hopeless {
            return;
        }
        self.entries.push_back(entry);
        let waiting = self.entries.len();
        if self.channel == Channel::Locations {
            if waiting > self.bound {
                self.conflate();
            }
        } else if waiting > MAX_OTHERS {
            self.hopeless = true;
            self.entries.clear();
        }
    }

    /// Keeps each person's newest position, in its place.
    fn conflate(&mut self) {
        let mut newest: HashMap<AccountId, usize> = HashMap::new();
        for (nth, entry) in self.entries.iter().enumerate() {
            let visibility = &entry.fact.visibility;
            let best = newest.entry(visibility.disclosure().of).or_insert(nth);
            if self.entries[*best].fact.visibility.disclosure().at <= visibility.disclosure().at {
                *best = nth;
            }
        }
        let sequence = |entry: Option<&Entry>| entry.map(|entry| entry.fact.event.sequence());
        let first = sequence(self.entries.front()).unwrap_or_default();
        let last = sequence(self.entries.back()).unwrap_or_default();
        let waited = self.entries.len();
        let entries = std::mem::take(&mut self.entries).into_iter().enumerate();
        self.entries = entries
            .filter(|(nth, entry)| newest.get(&entry.fact.visibility.disclosure().of) == Some(nth))
            .map(|(_, entry)| entry)
            .collect();
        if self.entries.len() < waited {
            let from = self.conflated.map_or(first - 1, |before| before.from);
            self.conflated = Some(Conflated { from, to: last });
        }
        // With many persons, each round of leaving out must be worthwhile.
        self.bound = MAX_POSITIONS.max(2 * self.entries.len());
    }

    /// Returns what was left out since the last call; to be sent before what follows.
    pub(super) fn take_conflated(&mut self) -> Option<Conflated> {
        self.conflated.take()
    }

    /// The oldest that wait, up to `max`.
    pub(super) fn take(&mut self, max: usize) -> Vec<Entry> {
        let count = self.entries.len().min(max);
        self.entries.drain(..count).collect()
    }

    /// The next entry.
    pub(super) fn front(&self) -> Option<&Entry> {
        self.entries.front()
    }

    /// Whether the reader does not even take what must not be left out.
    pub(super) fn is_hopeless(&self) -> bool {
        self.hopeless
    }
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
