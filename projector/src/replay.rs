//! Reads the log from one position to another, for callers that do not follow it.

use event_log::{EventLog, Item};
use schemas::{AggregateType, Log};

use crate::error::FeedError;
use crate::reader::Reader;

/// A read of the log from one position to another.
pub(crate) struct Replay {
    reader: Reader,
    position: u64,
    to: u64,
}

impl Replay {
    /// Reads from after `position` to `to`, which the log has already reached. If `only` names
    /// kinds of aggregate, nothing else is returned.
    pub(crate) async fn open(
        log: &EventLog,
        feed: Log,
        position: u64,
        to: u64,
        max: usize,
        only: &[AggregateType],
    ) -> Result<Self, FeedError> {
        let reader = Reader::open(log, feed, position, max, only).await?;
        Ok(Self {
            reader,
            position,
            to,
        })
    }

    /// Returns the next items, with the position that they lead to; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<(Vec<Item>, u64)>, FeedError> {
        if self.position >= self.to {
            return Ok(None);
        }
        if self.reader.began_at_end {
            self.position = self.to;
            return Ok(Some((Vec::new(), self.to)));
        }
        let mut batch = self.reader.next().await?;
        batch.items.retain(|item| item.sequence() <= self.to);
        // The log had reached `to` before the read: at its end there is nothing in between.
        self.position = if batch.caught_up {
            self.to
        } else {
            batch.last_sequence.min(self.to)
        };
        Ok(Some((batch.items, self.position)))
    }
}
