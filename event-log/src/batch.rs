//! Batches of events, as read from the log.

use std::sync::Arc;

use schemas::{AggregateType, EventId, Recorded};

use crate::mark::Mark;
use crate::subject::kind_of;

/// Events in order.
#[derive(Debug)]
pub struct Batch {
    /// Empty if events are left out, or if the log turned out to have no more.
    pub items: Vec<Item>,
    /// Whether the log had no more events when the last of them was sent.
    pub caught_up: bool,
    /// The sequence of the last of them.
    pub last_sequence: u64,
    /// Its id, if it could be read.
    pub last_event: Option<EventId>,
    /// Their approximate bytes in transit.
    pub bytes: usize,
}

impl Batch {
    /// An empty batch: the log has no more after `last`.
    pub(crate) fn end(last: Mark) -> Self {
        Self {
            items: Vec::new(),
            caught_up: true,
            last_sequence: last.sequence,
            last_event: last.event,
            bytes: 0,
        }
    }

    /// Adds what follows this batch in the log.
    pub fn append(&mut self, mut next: Self) {
        self.items.append(&mut next.items);
        self.caught_up = next.caught_up;
        self.last_sequence = next.last_sequence;
        self.last_event = next.last_event;
        self.bytes += next.bytes;
    }

    /// The mark at its end.
    pub fn mark(&self) -> Mark {
        Mark {
            sequence: self.last_sequence,
            event: self.last_event,
        }
    }

    /// The events among its items that can be read.
    pub fn events(&self) -> impl Iterator<Item = &Recorded> {
        self.items.iter().filter_map(Item::event)
    }

    /// Its events. Those that cannot be read are logged as lost to `what`.
    pub fn readable(&self, what: &str) -> impl Iterator<Item = &Recorded> {
        self.items
            .iter()
            .filter_map(move |item| item.readable(what))
    }

    /// The same, owned.
    pub fn into_readable(self, what: &str) -> impl Iterator<Item = Arc<Recorded>> {
        self.items.into_iter().filter_map(move |item| {
            item.readable(what)?;
            match item {
                Item::Event(recorded) => Some(recorded),
                Item::Undecodable { .. } => None,
            }
        })
    }
}

/// An entry of the log.
#[derive(Clone, Debug)]
pub enum Item {
    /// An event, which others may share.
    Event(Arc<Recorded>),
    /// Something that this program cannot read.
    Undecodable {
        /// Its sequence.
        sequence: u64,
        /// Its subject.
        subject: String,
        /// Why it cannot be read.
        reason: String,
    },
}

impl Item {
    /// Its sequence in the log.
    pub fn sequence(&self) -> u64 {
        match self {
            Self::Event(recorded) => recorded.sequence,
            Self::Undecodable { sequence, .. } => *sequence,
        }
    }

    /// The event's id, if it can be read.
    pub(crate) fn id(&self) -> Option<EventId> {
        self.event().map(|recorded| recorded.id)
    }

    /// Whether it is of one of these kinds, or its kind is unknown.
    pub(crate) fn is_of(&self, kinds: &[AggregateType]) -> bool {
        let kind = match self {
            Self::Event(recorded) => Some(recorded.stream.aggregate),
            Self::Undecodable { subject, .. } => kind_of(subject),
        };
        kind.is_none_or(|kind| kinds.contains(&kind))
    }

    /// The event, if it can be read.
    pub fn event(&self) -> Option<&Recorded> {
        match self {
            Self::Event(recorded) => Some(recorded),
            Self::Undecodable { .. } => None,
        }
    }

    /// The same, but logs an event that cannot be read as lost to `what`.
    fn readable(&self, what: &str) -> Option<&Recorded> {
        if let Self::Undecodable {
            sequence, reason, ..
        } = self
        {
            tracing::error!(sequence, reason, what, "An event cannot be read");
        }
        self.event()
    }
}
