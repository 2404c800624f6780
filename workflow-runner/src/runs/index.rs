//! Which runs are open: a fold of the log, kept per partition.
//!
//! An open run costs a few dozen bytes here, whatever it carries: its first sequence in the log
//! is enough to find everything else again.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use event_log::EventLog;
use ring::digest;
use schemas::{AggregateType, Event, OrgId, Recorded};
use uuid::Uuid;

use super::turn::Turn;

/// A run's id in 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct RunKey(pub(super) u128);

impl RunKey {
    pub(super) fn of(id: &str) -> Self {
        if let Ok(uuid) = Uuid::try_parse(id) {
            return Self(uuid.as_u128());
        }
        let hash = digest::digest(&digest::SHA256, id.as_bytes());
        let bytes = hash.as_ref().iter().take(16);
        Self(bytes.fold(0, |key, byte| key << 8 | u128::from(*byte)))
    }
}

/// The organization and the id of the run that a subject names, if it names one.
pub(super) fn run_of(subject: &str) -> Option<(OrgId, &str)> {
    let is_run = EventLog::kind_of(subject) == Some(AggregateType::Run);
    is_run.then(|| EventLog::ids_of(subject)).flatten()
}

/// The open runs of one partition.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Partition {
    /// All events up to this sequence are included.
    pub(super) folded_to: u64,
    pub(super) open: HashMap<RunKey, Open>,
}

/// A run that has not ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Open {
    /// The sequence of the event that opened it: its trigger or its retry.
    pub(super) first: u64,
    /// The last of its events known here.
    pub(super) known: u64,
    pub(super) history: History,
    /// Its organization and origin.
    pub(super) turn: Turn,
    pub(super) phase: Phase,
}

/// How much of a run this process has had before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum History {
    /// All its events: each came here, or a job that has begun since reads them.
    Seen,
    /// A checkpoint says when it was opened, but not which events it has had since.
    Noted,
}

/// What an open run is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// To be carried on.
    Ready,
    /// Its time.
    Waiting(DateTime<Utc>),
    /// Its job in this process.
    UnderWay,
}

/// The effect of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing relevant here.
    Nothing,
    /// The run is to be carried on.
    Ready,
    /// The run continues at this time.
    Waits(DateTime<Utc>),
    /// The run has ended.
    Ended,
}

impl Partition {
    /// Takes in an event of one of its runs.
    pub(super) fn fold(&mut self, key: RunKey, recorded: &Recorded) -> Change {
        let sequence = recorded.sequence;
        match &recorded.event {
            Event::WorkflowTriggered(_) | Event::RunRetried(_) => {
                let open = Open {
                    first: sequence,
                    known: sequence,
                    history: History::Seen,
                    turn: Turn::of(recorded),
                    phase: Phase::Ready,
                };
                self.open.insert(key, open);
                Change::Ready
            }
            Event::RunSucceeded(_)
            | Event::RunFailed(_)
            | Event::RunCancelled(_)
            | Event::RunForgotten(_) => match self.open.remove(&key) {
                Some(_) => Change::Ended,
                None => Change::Nothing,
            },
            event => match self.open.get_mut(&key) {
                Some(open) if open.known < sequence => {
                    open.known = sequence;
                    open.moved(event)
                }
                // Known from the job that wrote it, or of a run that has ended.
                _ => Change::Nothing,
            },
        }
    }

    /// Takes in an event of one of its runs that this version cannot read. It may be what opened
    /// the run: then the run waits, from there, for a version that can. A known run finds out when
    /// it is carried on.
    pub(super) fn fold_unreadable(&mut self, key: RunKey, sequence: u64, turn: Turn) -> Change {
        let before = self.open.len();
        let open = Open {
            first: sequence,
            known: sequence,
            history: History::Seen,
            turn,
            phase: Phase::Ready,
        };
        let open = self.open.entry(key).or_insert(open);
        open.known = open.known.max(sequence);
        if self.open.len() > before {
            Change::Ready
        } else {
            Change::Nothing
        }
    }

    /// Handles the end of a job and its run, up to `known`; unless the run was retried since.
    pub(super) fn ended(&mut self, key: RunKey, known: u64) -> Change {
        match self.open.get_mut(&key) {
            Some(open) if open.known > known => {
                open.phase = Phase::Ready;
                Change::Ready
            }
            _ => {
                self.open.remove(&key);
                Change::Ended
            }
        }
    }

    /// Handles the end of a job whose run waits for `until`; unless others have written to the run
    /// meanwhile, or may have: a job that began before the partition was taken over does not say.
    pub(super) fn waits(&mut self, key: RunKey, until: DateTime<Utc>, known: u64) -> Change {
        let Some(open) = self.open.get_mut(&key) else {
            return Change::Nothing;
        };
        if open.known > known || open.history == History::Noted {
            open.phase = Phase::Ready;
            return Change::Ready;
        }
        open.known = known;
        open.phase = Phase::Waiting(until);
        Change::Waits(until)
    }
}

impl Open {
    /// Of a run in a checkpoint: which events it has had since the first is found out when it is
    /// carried on.
    pub(super) fn noted(first: u64, turn: Turn, phase: Phase) -> Self {
        Self {
            first,
            known: first,
            history: History::Noted,
            turn,
            phase,
        }
    }

    /// Whether it has no event after the one that opened it.
    pub(super) fn is_untouched(&self) -> bool {
        self.known == self.first && self.history == History::Seen
    }

    /// A job has begun, and reads whatever is not known here.
    pub(super) fn begin(&mut self) {
        self.phase = Phase::UnderWay;
        self.history = History::Seen;
    }

    fn moved(&mut self, event: &Event) -> Change {
        match (event, self.phase) {
            (_, Phase::UnderWay) => Change::Nothing,
            (Event::RunWaiting(waiting), _) => {
                self.phase = Phase::Waiting(waiting.until);
                Change::Waits(waiting.until)
            }
            (_, Phase::Waiting(_)) => {
                self.phase = Phase::Ready;
                Change::Ready
            }
            (_, Phase::Ready) => Change::Nothing,
        }
    }
}

#[cfg(test)]
mod tests;
