//! What a queue has done, and what it is told of it.

use chrono::{DateTime, Utc};

/// Bounds of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Requests under way.
    pub(super) concurrency: usize,
    /// Deliveries that wait to be tried again before new ones are held back.
    pub(super) pending: usize,
}

/// What is known of a delivery before an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prior {
    /// Nobody has tried.
    New,
    /// It was tried, and the last attempt stands at this sequence of the deliveries' log.
    Attempted { attempts: u32, recorded: u64 },
}

/// An attempt to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Work {
    /// The event's sequence.
    pub(super) sequence: u64,
    pub(super) prior: Prior,
}

/// How an endpoint took an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// As it should.
    Well,
    /// Badly, but quickly.
    Badly,
    /// So that it had better get less at once: late, not at all, or saying that it is too much.
    Overwhelmed,
    /// Nothing was sent to it.
    NotSent,
}

/// Wanted events read from the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refill {
    /// The sequences of those that nobody has tried to deliver, in order.
    pub(super) untried: Vec<u64>,
    /// Those that wait to be tried again.
    pub(super) waiting: Vec<(u64, Retry)>,
    /// The sequence up to which this is all.
    pub(super) through: u64,
    /// Whether the log had nothing more of the organization.
    pub(super) complete: bool,
    /// How far the log was known before it was read.
    pub(super) head_before: u64,
}

impl Refill {
    /// Nothing yet of what follows the sequence `after`.
    pub(super) fn empty(after: u64, head_before: u64) -> Self {
        Self {
            untried: Vec::new(),
            waiting: Vec::new(),
            through: after,
            complete: false,
            head_before,
        }
    }
}

/// What a queue lacks: the events that follow a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) after: u64,
    /// Events up to here may have been tried by another process.
    pub(super) unsure_through: u64,
}

/// A delivery that waits to be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Retry {
    pub(super) due: DateTime<Utc>,
    /// Attempts made.
    pub(super) attempts: u32,
    /// Where the last of them stands in the deliveries' log.
    pub(super) recorded: u64,
}
