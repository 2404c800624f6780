//! Notes which runs are given what events say of a person, before they are.
//!
//! Forgetting a person finds the runs by these notes. A note is in the log before its run takes the
//! data, and the person is looked up once more after it: if they are not forgotten by then, a later
//! forgetting finds the note, and ends the run's stream so that what was about to be written to it
//! conflicts.

use std::collections::HashMap;

use event_log::{AppendError, Commit, EventLog, Expected, ReadError, Write, note_of_run};
use futures::{StreamExt as _, stream};
use schemas::{AccountId, Context, Event, EventId, NewEvent, Recorded, StreamId};
use service::Clock;
use uuid::Uuid;

use super::super::measure;
use super::matcher::{Matcher, Trigger};
use crate::people::People;
use crate::retry::retry_while;

/// Notes in one commit.
const AT_ONCE: usize = 100;
/// Persons for whom runs are noted at the same time.
const SIDE_BY_SIDE: usize = 8;

/// Notes runs for persons.
#[derive(Clone, Copy)]
pub(super) struct Noter<'a> {
    pub(super) log: &'a EventLog,
    pub(super) people: &'a People,
    pub(super) clock: &'a dyn Clock,
}

impl Noter<'_> {
    /// Whether a run may be given what an event says: not if it is of a person who is forgotten.
    pub(super) async fn may_hold(self, recorded: &Recorded, run: &StreamId) -> bool {
        let Some((account, _)) = recorded.event.personal() else {
            return true;
        };
        self.note(account, &[note_of_run(run)]).await
    }

    /// Notes runs for a person; returns whether they may be given the person's data.
    async fn note(self, account: AccountId, notes: &[Event]) -> bool {
        for some in notes.chunks(AT_ONCE) {
            if let Err(error) = self.append(account, some).await {
                measure::unmatched("note");
                tracing::error!(%error, "Runs cannot be noted for a person, and are given nothing");
                return false;
            }
        }
        self.people.settle().await;
        let is_forgotten = self
            .people
            .read(|known| known.circles().is_forgotten(account));
        !is_forgotten
    }

    /// Appends notes, unless that was done before: an event may be matched again.
    async fn append(self, account: AccountId, notes: &[Event]) -> Result<(), NotNoted> {
        let stream = self.log.runs_about(account);
        loop {
            let last = retry_while(|| self.log.last(&stream), ReadError::passes).await?;
            if are_noted(notes, last.as_ref().map(|last| &last.event)) {
                return Ok(());
            }
            let write = Write {
                stream: stream.clone(),
                expected: Expected::after(last.map(|last| last.sequence)),
                events: notes.iter().map(|note| self.new_event(note)).collect(),
            };
            let commit = Commit::from(write);
            let append = || self.log.commit(commit.clone());
            match retry_while(append, AppendError::passes).await {
                Ok(_) => return Ok(()),
                Err(AppendError::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn new_event(self, note: &Event) -> NewEvent {
        NewEvent {
            id: EventId(Uuid::now_v7()),
            time: self.clock.now(),
            event: note.clone(),
            context: Context::default(),
            receipt: None,
        }
    }
}

/// Whether notes are certainly in the log already, by the last one there. Of several, the last may
/// be there without the others: which runs an event begins can differ when it is matched again.
fn are_noted(notes: &[Event], last: Option<&Event>) -> bool {
    matches!(notes, [note] if Some(note) == last)
}

/// Why runs were not noted.
#[derive(Debug, thiserror::Error)]
enum NotNoted {
    /// The last note cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The log does not accept the notes.
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl Matcher {
    pub(super) fn noter(&self) -> Noter<'_> {
        Noter {
            log: &self.log,
            people: &self.people,
            clock: &*self.clock,
        }
    }

    /// Notes the runs that are given a person's data, those of one person together; returns all
    /// that may begin.
    pub(super) async fn noted(&self, triggers: Vec<Trigger>) -> Vec<Commit> {
        let mut notes: HashMap<AccountId, Vec<Event>> = HashMap::new();
        for trigger in &triggers {
            if let Some(account) = trigger.about {
                let runs = trigger.commit.writes.iter().map(|write| &write.stream);
                notes
                    .entry(account)
                    .or_default()
                    .extend(runs.map(note_of_run));
            }
        }
        let noter = self.noter();
        let noting = notes.into_iter().map(|(account, notes)| async move {
            let may_hold = noter.note(account, &notes).await;
            (account, may_hold)
        });
        let noted = stream::iter(noting).buffer_unordered(SIDE_BY_SIDE);
        let noted: HashMap<AccountId, bool> = noted.collect().await;
        let may_begin = |trigger: &Trigger| trigger.about.is_none_or(|account| noted[&account]);
        let triggers = triggers.into_iter().filter(may_begin);
        triggers.map(|trigger| trigger.commit).collect()
    }
}

#[cfg(test)]
mod tests {
    use schemas::{AggregateType, OrgId};

    use super::*;

    fn note(run: &str) -> Event {
        note_of_run(&StreamId::new(&OrgId::from("o"), AggregateType::Run, run))
    }

    #[test]
    fn the_last_note_says_nothing_of_others_that_are_noted_with_it() {
        let (one, other) = (note("1"), note("2"));
        assert!(are_noted(std::slice::from_ref(&one), Some(&one)));
        assert!(!are_noted(std::slice::from_ref(&one), Some(&other)));
        assert!(!are_noted(std::slice::from_ref(&one), None));
        assert!(!are_noted(&[other, one.clone()], Some(&one)));
    }
}
