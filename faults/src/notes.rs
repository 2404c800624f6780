//! The clients' requests and responses: all that the checker knows besides the log.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use serde_json::Value;

/// How often something is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    /// Once if the command was acknowledged, at most once if the outcome is unknown.
    Once,
    /// At most once in any case: the command may have found the change already made.
    AtMostOnce,
    /// Any number of times, such as a call's copies for organizations.
    Some,
}

/// An event that a command asks for.
#[derive(Clone, Debug)]
pub(crate) struct ExpectedEvent {
    /// Its possible types.
    pub(crate) types: Vec<String>,
    /// Fields that its data must have.
    pub(crate) data: Value,
    pub(crate) times: Times,
}

impl ExpectedEvent {
    pub(crate) fn once(kind: &str, data: Value) -> Self {
        Self {
            types: vec![kind.to_owned()],
            data,
            times: Times::Once,
        }
    }

    pub(crate) fn times(self, times: Times) -> Self {
        Self { times, ..self }
    }

    pub(crate) fn or(mut self, kind: &str) -> Self {
        self.types.push(kind.to_owned());
        self
    }
}

/// A client's final response.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// It was carried out.
    Acknowledged {
        position: Option<String>,
        body: Value,
    },
    /// It was not carried out.
    Refused { status: u16 },
    /// Unknown: no response, or one that says so.
    Unknown,
}

/// The outcome of one attempt at a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    Acknowledged,
    Refused,
    Unknown,
}

/// One attempt at a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    pub(crate) sent: Instant,
    pub(crate) took: Duration,
    pub(crate) came: Came,
}

/// One command.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    /// The trace shared by all its attempts and every event that follows from it.
    pub(crate) trace: u128,
    /// The kind of command, for the summary.
    pub(crate) command: &'static str,
    /// The request, for readers of a report.
    pub(crate) request: String,
    /// Whether it came with an `Idempotency-Key`.
    pub(crate) keyed: bool,
    pub(crate) attempts: u32,
    pub(crate) expected: Vec<ExpectedEvent>,
    pub(crate) outcome: Outcome,
    /// The time by which its outcome was known.
    pub(crate) answered: DateTime<Utc>,
    /// When it was first sent and by when its outcome was known, on a clock that is never set.
    pub(crate) sent: Instant,
    pub(crate) known: Instant,
}

/// A request that counted against a limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admitted {
    pub(crate) sent: Instant,
    pub(crate) answered: Instant,
    pub(crate) cost: u64,
}

/// The admitted requests of one limited caller.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limited {
    pub(crate) limit: u64,
    pub(crate) admitted: Vec<Admitted>,
    pub(crate) refused: u64,
}

/// A reader's complaint: a response that cannot be right.
#[derive(Clone, Debug)]
pub(crate) struct Complaint {
    pub(crate) check: &'static str,
    pub(crate) what: String,
    pub(crate) expected: String,
    pub(crate) found: String,
}

/// Cells by rows.
pub(crate) type Table = Vec<Vec<String>>;

/// An export that completed.
#[derive(Clone, Debug)]
pub(crate) struct Exported {
    pub(crate) org: String,
    pub(crate) kind: &'static str,
    /// The position that it had to be at, or after.
    pub(crate) position: Option<String>,
    /// The cells of its rows in the compared columns.
    pub(crate) rows: Table,
}

/// A person whose deletion was acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Forgotten {
    pub(crate) id: u64,
    /// The token they were signed in with.
    pub(crate) token: String,
    /// The text in all their personal data.
    pub(crate) mark: String,
}

/// Everything that was recorded.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    commands: Mutex<Vec<Note>>,
    attempts: Mutex<Vec<Attempt>>,
    limited: Mutex<BTreeMap<String, Limited>>,
    complaints: Mutex<Vec<Complaint>>,
    forgotten: Mutex<Vec<Forgotten>>,
    exports: Mutex<Vec<Exported>>,
    /// Number of correct reads, by check.
    right: Mutex<BTreeMap<&'static str, u64>>,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Notes {
    pub(crate) fn command(&self, note: Note) {
        locked(&self.commands).push(note);
    }

    pub(crate) fn attempt(&self, attempt: Attempt) {
        locked(&self.attempts).push(attempt);
    }

    pub(crate) fn limited(&self, who: &str, limit: u64, admitted: Option<Admitted>) {
        let mut all = locked(&self.limited);
        let one = all.entry(who.to_owned()).or_default();
        one.limit = limit;
        match admitted {
            Some(admitted) => one.admitted.push(admitted),
            None => one.refused += 1,
        }
    }

    pub(crate) fn exported(&self, exported: Exported) {
        locked(&self.exports).push(exported);
    }

    pub(crate) fn forgotten(&self, forgotten: Forgotten) {
        locked(&self.forgotten).push(forgotten);
    }

    pub(crate) fn complain(&self, complaint: Complaint) {
        locked(&self.complaints).push(complaint);
    }

    pub(crate) fn right(&self, check: &'static str) {
        *locked(&self.right).entry(check).or_default() += 1;
    }

    pub(crate) fn commands(&self) -> Vec<Note> {
        locked(&self.commands).clone()
    }

    pub(crate) fn attempts(&self) -> Vec<Attempt> {
        locked(&self.attempts).clone()
    }

    pub(crate) fn limits(&self) -> BTreeMap<String, Limited> {
        locked(&self.limited).clone()
    }

    pub(crate) fn complaints(&self) -> Vec<Complaint> {
        locked(&self.complaints).clone()
    }

    pub(crate) fn exports(&self) -> Vec<Exported> {
        locked(&self.exports).clone()
    }

    pub(crate) fn all_forgotten(&self) -> Vec<Forgotten> {
        locked(&self.forgotten).clone()
    }

    pub(crate) fn rights(&self) -> BTreeMap<&'static str, u64> {
        locked(&self.right).clone()
    }

    /// Number of commands of each kind, by outcome.
    pub(crate) fn tally(&self) -> BTreeMap<&'static str, [u64; 3]> {
        let mut tally: BTreeMap<_, [u64; 3]> = BTreeMap::new();
        for note in locked(&self.commands).iter() {
            let place = match note.outcome {
                Outcome::Acknowledged { .. } => 0,
                Outcome::Refused { .. } => 1,
                Outcome::Unknown => 2,
            };
            tally.entry(note.command).or_default()[place] += 1;
        }
        tally
    }
}
