//! The work of a queue, and the results reported to it.

use chrono::{DateTime, Utc};

/// Limits of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Requests in progress.
    pub(super) concurrency: usize,
    /// Deliveries that wait for a retry before new ones are held back.
    pub(super) pending: usize,
}

/// How many times as many retries as a failing endpoint may have are too many for any. An endpoint
/// that recovers has fewer, and gets everything again.
const FOR_ANY: usize = 2;

impl Bounds {
    /// How many deliveries of a failing endpoint may wait for a retry. `crowded`: all queues
    /// together have too many.
    pub(super) fn retries(self, crowded: bool) -> usize {
        if crowded {
            self.pending.div_ceil(100)
        } else {
            self.pending
        }
    }

    /// How many may, although it responds now and then.
    pub(super) fn retries_of_any(self, crowded: bool) -> usize {
        FOR_ANY * self.retries(crowded).max(1)
    }
}

/// What is known of a delivery before an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prior {
    /// It was not tried.
    New,
    /// It was tried, and the last attempt is at this sequence of the deliveries' log.
    Attempted { attempts: u32, recorded: u64 },
}

/// An attempt to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Work {
    /// The event's sequence.
    pub(super) sequence: u64,
    pub(super) prior: Prior,
}

/// How an endpoint responded to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Success.
    Well,
    /// A failure, but a quick one.
    Badly,
    /// It is overloaded: late, no response, or it said so. It should get fewer requests at once.
    Overwhelmed,
    /// Nothing was sent to it.
    NotSent,
}

/// Wanted events read from the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refill {
    /// The sequences of those without an attempt, in order.
    pub(super) untried: Vec<u64>,
    /// Those that wait for a retry.
    pub(super) waiting: Vec<(u64, Retry)>,
    /// The sequence up to which this is complete.
    pub(super) through: u64,
    /// Whether nothing more is wanted up to `head_before`.
    pub(super) complete: bool,
    /// The position up to which the log was known before it was read. What follows is not in here:
    /// the endpoint may want other events from then on.
    pub(super) head_before: u64,
}

impl Refill {
    /// An empty refill of the events after the sequence `after`.
    pub(super) fn empty(after: u64, head_before: u64) -> Self {
        Self {
            untried: Vec::new(),
            waiting: Vec::new(),
            through: after,
            complete: after >= head_before,
            head_before,
        }
    }

    /// Notes that a page was read, up to `through`; `is_last` if the log had nothing after it.
    pub(super) fn reached(&mut self, through: u64, is_last: bool) {
        self.complete = is_last || through >= self.head_before;
        self.through = through.min(self.head_before);
    }
}

/// The events missing from a queue: those after a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) after: u64,
    /// Events up to here may have been tried by another process.
    pub(super) unsure_through: u64,
}

/// A delivery that waits for a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Retry {
    pub(super) due: DateTime<Utc>,
    /// Attempts made.
    pub(super) attempts: u32,
    /// The sequence of the last of them in the deliveries' log.
    pub(super) recorded: u64,
}
