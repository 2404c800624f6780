//! The open calls for help of the last day, kept current by the log's tail.
//!
//! Events may come in any order, since those from before the start are read while the tail delivers
//! newer ones. Memory is bounded: of one person's calls the newest are held, and of all calls as
//! many as fit.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use schemas::sos::Triggered;
use schemas::{AccountId, Event, OrgId, Recorded, StreamId};

/// Older calls are no longer shown, answered or not.
pub(super) const LAST: TimeDelta = TimeDelta::days(1);
/// Calls of one person, so that they do not hide another's.
const OF_ONE: usize = 10;
/// Calls that one viewer is shown.
const OF_ALL: usize = 100;
/// Approximate memory of all calls.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Approximate memory of a call besides its sealed data and its audience.
const CALL_BYTES: usize = 1_024;

/// An open call, as one organization or all persons may see it.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// Its `sos.triggered`.
    pub(super) recorded: Arc<Recorded>,
    /// Whether somebody has seen it.
    pub(super) acknowledged: bool,
}

/// The open calls. A call is in the log once for all persons, and once for each organization.
#[derive(Debug)]
pub(super) struct OpenCalls {
    /// By the sequences of their first events.
    calls: BTreeMap<u64, Call>,
    sequences: HashMap<StreamId, u64>,
    by_person: HashMap<(OrgId, AccountId), BTreeSet<u64>>,
    /// Answers to calls that may still be read, until the past is known.
    answered: Option<Answered>,
    bytes: usize,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct Answered {
    acknowledged: HashSet<StreamId>,
    resolved: HashSet<StreamId>,
}

impl Default for OpenCalls {
    fn default() -> Self {
        Self {
            calls: BTreeMap::new(),
            sequences: HashMap::new(),
            by_person: HashMap::new(),
            answered: Some(Answered::default()),
            bytes: 0,
            max_bytes: MAX_BYTES,
        }
    }
}

impl OpenCalls {
    /// Takes in an event; one that is taken in again changes nothing.
    pub(super) fn take(&mut self, recorded: &Recorded) {
        let stream = &recorded.stream;
        match &recorded.event {
            Event::SosTriggered(call) => self.open(call, recorded),
            Event::SosAcknowledged(_) => {
                let known = self.sequences.get(stream);
                match known.and_then(|sequence| self.calls.get_mut(sequence)) {
                    Some(call) => call.acknowledged = true,
                    None => self.note(stream, |answered| &mut answered.acknowledged),
                }
            }
            Event::SosResolved(_) => {
                if let Some(sequence) = self.sequences.get(stream).copied() {
                    self.remove(sequence);
                }
                self.note(stream, |answered| &mut answered.resolved);
            }
            _ => {}
        }
    }

    fn note(
        &mut self,
        stream: &StreamId,
        of: impl FnOnce(&mut Answered) -> &mut HashSet<StreamId>,
    ) {
        if let Some(answered) = &mut self.answered {
            of(answered).insert(stream.clone());
        }
    }

    fn open(&mut self, call: &Triggered, recorded: &Recorded) {
        let stream = &recorded.stream;
        let answered = self.answered.as_ref();
        let is_over = answered.is_some_and(|answered| answered.resolved.contains(stream));
        if is_over || self.sequences.contains_key(stream) {
            return;
        }
        let sequence = recorded.sequence;
        let added = Call {
            acknowledged: answered.is_some_and(|known| known.acknowledged.contains(stream)),
            recorded: Arc::new(recorded.clone()),
        };
        self.bytes += added.bytes();
        self.calls.insert(sequence, added);
        self.sequences.insert(stream.clone(), sequence);
        let whose = (stream.org.clone(), call.user_id);
        let own = self.by_person.entry(whose).or_default();
        own.insert(sequence);
        let surplus = own.first().copied().filter(|_| own.len() > OF_ONE);
        if let Some(oldest) = surplus {
            self.remove(oldest);
        }
        self.drop_old(recorded.time - LAST);
    }

    /// Drops what is no longer shown, and the oldest of what is too much.
    fn drop_old(&mut self, until: DateTime<Utc>) {
        while let Some((sequence, oldest)) = self.calls.first_key_value()
            && (oldest.recorded.time < until || self.bytes > self.max_bytes)
        {
            let sequence = *sequence;
            self.remove(sequence);
        }
    }

    fn remove(&mut self, sequence: u64) {
        let Some(call) = self.calls.remove(&sequence) else {
            return;
        };
        self.bytes -= call.bytes();
        self.sequences.remove(&call.recorded.stream);
        if let Event::SosTriggered(triggered) = &call.recorded.event {
            let whose = (call.recorded.stream.org.clone(), triggered.user_id);
            if let Some(own) = self.by_person.get_mut(&whose) {
                own.remove(&sequence);
                if own.is_empty() {
                    self.by_person.remove(&whose);
                }
            }
        }
    }

    /// The past has been read as far as it counts.
    pub(super) fn past_is_known(&mut self) {
        self.answered = None;
    }

    /// Drops the calls of a person who was forgotten.
    pub(super) fn forget(&mut self, account: AccountId) {
        let own = self.by_person.iter();
        let own = own.filter(|((_, caller), _)| *caller == account);
        let sequences: Vec<u64> = own.flat_map(|(_, own)| own.iter().copied()).collect();
        for sequence in sequences {
            self.remove(sequence);
        }
    }

    /// The newest calls since a time of these persons in an organization's part of the log, newest
    /// first.
    pub(super) fn of(
        &self,
        org: &OrgId,
        persons: impl IntoIterator<Item = AccountId>,
        since: DateTime<Utc>,
    ) -> Vec<Call> {
        let own = persons
            .into_iter()
            .filter_map(|account| self.by_person.get(&(org.clone(), account)));
        let sequences: BTreeSet<u64> = own.flatten().copied().collect();
        let calls = sequences.iter().rev().filter_map(|one| self.calls.get(one));
        let recent = calls.filter(|call| call.recorded.time >= since);
        recent.take(OF_ALL).cloned().collect()
    }
}

impl Call {
    fn bytes(&self) -> usize {
        match &self.recorded.event {
            Event::SosTriggered(call) => {
                CALL_BYTES + call.sealed.ciphertext().len() + size_of_val(&*call.audience)
            }
            _ => CALL_BYTES,
        }
    }
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
