//! Events already in the log when a tail of several kinds of aggregate begins.
//!
//! For a consumer that is filtered by several subjects the server searches all subjects of a block
//! at each step: 5,000 events a second, where a consumer of one subject delivers 150,000. So the
//! past is read kind by kind and put in order here; only what follows comes from one consumer.

use std::collections::VecDeque;

use schemas::{AggregateType, Log};

use super::Tail;
use crate::batch::{Batch, Item};
use crate::mark::Mark;
use crate::{EventLog, ReadError, TailError};

/// All events of some kinds up to the end that the log had at the start.
pub(super) struct Past {
    kinds: Vec<Kind>,
    pub(super) end: u64,
}

struct Kind {
    tail: Tail,
    /// Events that it delivered and that have not been taken.
    waiting: VecDeque<Item>,
    /// Approximate bytes of each of them in transit.
    bytes: usize,
}

impl Past {
    pub(super) async fn open(
        log: &EventLog,
        stream: Log,
        after: u64,
        kinds: &[AggregateType],
    ) -> Result<Self, ReadError> {
        // Before the tails begin, so that each covers everything up to there.
        let end = log.end(stream).await?.sequence();
        let mut past = Self {
            kinds: Vec::with_capacity(kinds.len()),
            end,
        };
        for kind in kinds {
            let filter = log.subjects().of_kind(*kind);
            let tail = log.tail_on(stream, after, vec![filter]).await?;
            past.kinds.push(Kind {
                tail,
                waiting: VecDeque::new(),
                bytes: 0,
            });
        }
        past.drop_ended();
        Ok(past)
    }

    pub(super) fn is_over(&self) -> bool {
        self.kinds.is_empty()
    }

    /// How many events wait, according to the server.
    pub(super) fn pending(&self) -> u64 {
        let waiting = |kind: &Kind| kind.tail.pending() + kind.waiting.len() as u64;
        self.kinds.iter().map(waiting).sum()
    }

    /// Waits for what comes next and takes up to `max` events of it; `None` if there are no more.
    /// Cancelling the wait loses nothing.
    pub(super) async fn next(&mut self, max: usize) -> Result<Option<Batch>, TailError> {
        while !self.is_over() {
            for kind in &mut self.kinds {
                if kind.waiting.is_empty() {
                    kind.fill(max, self.end).await?;
                }
            }
            let batch = self.take(max);
            self.drop_ended();
            if batch.is_some() {
                return Ok(batch);
            }
        }
        Ok(None)
    }

    /// Takes the earliest events as long as every kind has some waiting: the next of a kind that
    /// has none may precede all others.
    fn take(&mut self, max: usize) -> Option<Batch> {
        let mut batch = Batch::end(Mark::default());
        batch.caught_up = false;
        while batch.items.len() < max
            && let Some(kind) = self.first()
            && let Some(item) = kind.waiting.pop_front()
        {
            batch.bytes += kind.bytes;
            batch.last_sequence = item.sequence();
            batch.last_event = item.id();
            batch.items.push(item);
            self.drop_ended();
        }
        (!batch.items.is_empty()).then_some(batch)
    }

    /// The kind whose next event precedes those of all others, if each has one.
    fn first(&mut self) -> Option<&mut Kind> {
        let next = |kind: &Kind| kind.waiting.front().map_or(0, Item::sequence);
        let kinds = self.kinds.iter_mut();
        kinds.min_by_key(|kind| next(kind))
    }

    fn drop_ended(&mut self) {
        let end = self.end;
        self.kinds.retain(|kind| !kind.has_ended(end));
    }
}

impl Kind {
    async fn fill(&mut self, max: usize, end: u64) -> Result<(), TailError> {
        // A tail within a tail.
        let batch = Box::pin(self.tail.next(max)).await?;
        self.bytes = batch.bytes.div_ceil(batch.items.len().max(1));
        let of_the_past = |item: &Item| item.sequence() <= end;
        self.waiting
            .extend(batch.items.into_iter().take_while(of_the_past));
        Ok(())
    }

    fn has_ended(&self, end: u64) -> bool {
        let nothing_comes = self.tail.caught_up() || self.tail.last_sequence() >= end;
        nothing_comes && self.waiting.is_empty()
    }
}
