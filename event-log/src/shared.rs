//! What this process last read of a stream of the log: read and decoded once, for all its followers
//! here.
//!
//! A task reads into a window of bounded bytes, and all followers take from there. A follower
//! slower than the window continues with its own tail until it has caught up.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::batch::{Batch, Item};
use crate::mark::Mark;
use crate::tail::Tail;

/// Bytes of events, as received from the server, kept for those who take them later.
const KEPT_BYTES: usize = 4 * 1024 * 1024;
/// Events read at a time.
const READ: usize = 512;

/// One stream of the log as this process reads it.
#[derive(Default)]
pub(crate) struct SharedStream {
    state: Mutex<State>,
    changed: watch::Sender<()>,
    /// The newest event that any follower in this process has taken.
    newest: Mutex<Mark>,
}

#[derive(Default)]
struct State {
    followers: usize,
    reading: Option<Reading>,
    /// How often a task began to read.
    begun: u64,
}

struct Reading {
    number: u64,
    window: Window,
    _task: AbortOnDropHandle<()>,
}

/// A follower's part in a stream that is shared. Reading stops once the last is gone.
pub(crate) struct Share {
    stream: Arc<SharedStream>,
    changed: watch::Receiver<()>,
}

/// The result of taking from a window.
pub(crate) enum Taken {
    /// Events in order, and how many more there are.
    Events(Batch, u64),
    /// Nothing new yet; how many more there are in the log.
    Nothing(u64),
    /// Some of the next events are gone.
    Gone,
}

/// The last events of a stream.
#[derive(Default)]
struct Window {
    /// All events after this one have arrived and are here.
    after: u64,
    kept: VecDeque<Kept>,
    bytes: usize,
    /// Events that wait in the log after the last one.
    pending: u64,
}

struct Kept {
    item: Item,
    /// Its approximate bytes in transit.
    bytes: usize,
}

/// Ends a reading however its task ends.
struct Ending(Arc<SharedStream>, u64);

impl SharedStream {
    /// Lets a follower join that has taken every event up to `after`, the end of the log not long
    /// ago; the first one begins with a tail from there. `None` if what comes next has already left
    /// the window.
    pub(crate) fn join(self: &Arc<Self>, after: u64, tail: impl FnOnce() -> Tail) -> Option<Share> {
        let mut state = self.state();
        match &state.reading {
            Some(reading) if reading.window.after > after => return None,
            Some(_) => {}
            None => {
                state.begun += 1;
                let number = state.begun;
                let ending = Ending(Arc::clone(self), number);
                let window = Window {
                    after,
                    ..Window::default()
                };
                let task = tokio::spawn(read(ending, tail()));
                state.reading = Some(Reading {
                    number,
                    window,
                    _task: AbortOnDropHandle::new(task),
                });
            }
        }
        state.followers += 1;
        Some(Share {
            changed: self.changed.subscribe(),
            stream: Arc::clone(self),
        })
    }

    /// Records an event that was taken, by any follower.
    pub(crate) fn took(&self, mark: Mark) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if mark.event.is_some() && newest.sequence < mark.sequence {
            *newest = mark;
        }
    }

    pub(crate) fn newest(&self) -> Mark {
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leave(&self) {
        let mut state = self.state();
        state.followers -= 1;
        if state.followers == 0 {
            let ended = state.reading.take();
            drop(state);
            // The task's end locks the state.
            drop(ended);
        }
    }
}

/// Reads for all until no follower is left, or up to a hole: each follower meets it with its own
/// tail, and reports it.
async fn read(reading: Ending, mut tail: Tail) {
    let Ending(stream, number) = &reading;
    while let Ok(batch) = tail.next(READ).await {
        let pending = tail.pending();
        let mut state = stream.state();
        let Some(reading) = state.reading.as_mut().filter(|own| own.number == *number) else {
            return;
        };
        reading.window.push(batch, pending);
        drop(state);
        stream.changed.send_replace(());
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let Self(stream, number) = self;
        let mut state = stream.state();
        let ended = state.reading.take_if(|reading| reading.number == *number);
        drop(state);
        drop(ended);
        stream.changed.send_replace(());
    }
}

impl Share {
    /// Takes up to `max` events after `last`.
    pub(crate) fn take(&mut self, last: u64, max: usize) -> Taken {
        // `changed` reports what changes from here on.
        self.changed.mark_unchanged();
        match &self.stream.state().reading {
            Some(reading) => reading.window.take(last, max),
            None => Taken::Gone,
        }
    }

    /// Waits for something new since the last [`Share::take`].
    pub(crate) async fn changed(&mut self) {
        // The sender lives as long as the stream.
        let _ = self.changed.changed().await;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.stream.leave();
    }
}

impl Window {
    fn push(&mut self, batch: Batch, pending: u64) {
        self.pending = pending;
        // They came together; the exact size of each is not worth keeping.
        let bytes = batch.bytes.div_ceil(batch.items.len().max(1));
        for item in batch.items {
            self.bytes += bytes;
            self.kept.push_back(Kept { item, bytes });
        }
        while self.bytes > KEPT_BYTES
            && let Some(oldest) = self.kept.pop_front()
        {
            self.bytes -= oldest.bytes;
            self.after = oldest.item.sequence();
        }
    }

    fn take(&self, last: u64, max: usize) -> Taken {
        if last < self.after {
            return Taken::Gone;
        }
        let is_known = |kept: &Kept| kept.item.sequence() <= last;
        let from = self.kept.partition_point(is_known);
        let to = self.kept.len().min(from + max);
        let taken = self.kept.range(from..to);
        let Some(newest) = taken.clone().next_back() else {
            return Taken::Nothing(self.pending);
        };
        let left = (self.kept.len() - to) as u64 + self.pending;
        let batch = Batch {
            caught_up: left == 0,
            last_sequence: newest.item.sequence(),
            last_event: newest.item.id(),
            bytes: taken.clone().map(|kept| kept.bytes).sum(),
            items: taken.map(|kept| kept.item.clone()).collect(),
        };
        Taken::Events(batch, left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(sequences: std::ops::RangeInclusive<u64>, bytes: usize) -> Batch {
        let item = |sequence| Item::Undecodable {
            sequence,
            subject: String::new(),
            reason: String::new(),
        };
        Batch {
            caught_up: true,
            last_sequence: *sequences.end(),
            last_event: None,
            bytes,
            items: sequences.map(item).collect(),
        }
    }

    fn sequences(window: &Window, last: u64, max: usize) -> Option<(Vec<u64>, u64)> {
        match window.take(last, max) {
            Taken::Events(batch, left) => {
                assert_eq!(batch.caught_up, left == 0);
                let items = batch.items.iter();
                Some((items.map(Item::sequence).collect(), left))
            }
            Taken::Nothing(left) => Some((Vec::new(), left)),
            Taken::Gone => None,
        }
    }

    #[test]
    fn each_takes_what_follows_its_own_last_event() {
        let mut window = Window {
            after: 10,
            ..Window::default()
        };
        window.push(batch(11..=12, 10), 0);
        window.push(batch(15..=17, 10), 3);
        assert_eq!(sequences(&window, 10, 3), Some((vec![11, 12, 15], 5)));
        assert_eq!(sequences(&window, 15, 9), Some((vec![16, 17], 3)));
        assert_eq!(sequences(&window, 13, 1), Some((vec![15], 5)));
        assert_eq!(sequences(&window, 17, 9), Some((vec![], 3)));
        assert_eq!(sequences(&window, 20, 9), Some((vec![], 3)));
        assert_eq!(sequences(&window, 9, 9), None);
    }

    #[test]
    fn what_is_kept_is_bounded_and_who_is_slower_learns_it() {
        let mut window = Window::default();
        for n in 0..100 {
            window.push(batch(n * 10 + 1..=n * 10 + 10, KEPT_BYTES / 10), 0);
        }
        assert!(window.bytes <= KEPT_BYTES && window.bytes > KEPT_BYTES / 2);
        let after = window.after;
        assert!(after > 800, "{after}");
        assert_eq!(sequences(&window, after - 1, 9), None);
        let (rest, _) = sequences(&window, after, 1_000).unwrap();
        assert_eq!(rest, (after + 1..=1_000).collect::<Vec<_>>());
    }
}
