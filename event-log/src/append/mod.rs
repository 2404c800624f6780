//! Appending: what a decision asks of the log, and the possible results.

mod appender;
mod group;
mod load;
mod resolve;
mod sender;
mod turns;
mod wire;

use schemas::{Log, NewEvent, StreamId};
use traces::{Span, SpanKind};

pub(crate) use appender::Appender;
pub(crate) use wire::{BATCH_BYTES, BATCH_MESSAGES, Outcome, Wire, read_answer};

/// The events of one decision: all are appended or none.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The writes: at least one, and each aggregate only once.
    pub writes: Vec<Write>,
}

/// Events for one aggregate.
#[derive(Clone, Debug)]
pub struct Write {
    /// The aggregate.
    pub stream: StreamId,
    /// The state its stream must be in for the events to be right.
    pub expected: Expected,
    /// At least one event.
    pub events: Vec<NewEvent>,
}

/// The state an aggregate's stream must be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// It has no event yet.
    Empty,
    /// Its last event has this sequence.
    At(u64),
}

impl Expected {
    /// The expectation of a writer that has seen this last sequence.
    pub fn after(last: Option<u64>) -> Self {
        last.map_or(Self::Empty, Self::At)
    }

    pub(crate) fn sequence(self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::At(sequence) => sequence,
        }
    }
}

/// Why events were not appended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// Another writer appended to one of the aggregates: load again and decide again.
    #[error("the aggregate has changed meanwhile")]
    Conflict,
    /// An event, or the decision as a whole, is larger than the log accepts.
    #[error("the event is too large for the log")]
    TooLarge,
    /// An event's data nests deeper than readers accept.
    #[error("the event is nested too deep for the log")]
    TooDeep,
    /// The commit itself is wrong: a fault in the caller.
    #[error("malformed commit: {0}")]
    Malformed(&'static str),
    /// The log is slow, and the events' party writes more than others: none of them was written.
    #[error("the event log is busy, and others write less")]
    HeldBack,
    /// The log is down or did not answer in time; the events may or may not be stored. The same
    /// commit may be retried: its event ids keep it from happening twice.
    #[error("the event log does not answer: {0}")]
    Unavailable(String),
}

impl AppendError {
    /// Whether the same commit may be written a moment later.
    pub fn passes(&self) -> bool {
        matches!(self, Self::HeldBack | Self::Unavailable(_))
    }
}

impl From<Write> for Commit {
    fn from(write: Write) -> Self {
        Self {
            writes: vec![write],
        }
    }
}

impl Commit {
    /// The span of its append: a part of what appends it, or of what led to its first event.
    pub(crate) fn span(&self) -> Span {
        let mut span = traces::part("append", SpanKind::Producer);
        if !span.is_recorded() {
            let mut events = self.writes.iter().flat_map(|write| &write.events);
            let trace = events.find_map(|event| event.context.traceparent.as_ref());
            span = traces::follow("append", SpanKind::Producer, trace);
        }
        span.note("waypost.events", || {
            let events = self.writes.iter().map(|write| write.events.len());
            i64::try_from(events.sum::<usize>()).unwrap_or(i64::MAX)
        });
        span
    }

    pub(crate) fn log(&self) -> Result<Log, AppendError> {
        let malformed = |reason| Err(AppendError::Malformed(reason));
        let Some(first) = self.writes.first() else {
            return malformed("no write");
        };
        let log = first.stream.aggregate.log();
        for (place, write) in self.writes.iter().enumerate() {
            if write.stream.aggregate.log() != log {
                return malformed("two streams of the log in one commit");
            }
            if write.events.is_empty() {
                return malformed("a write without events");
            }
            if self.writes[..place]
                .iter()
                .any(|other| other.stream == write.stream)
            {
                return malformed("an aggregate written twice");
            }
        }
        Ok(log)
    }
}
