//! Notes of the runs that hold a person's data in clear, so that they can be forgotten with the
//! person.
//!
//! A run takes a copy of what it is shown of an event, and no key protects that copy. So the run is
//! noted before it takes one, in a stream of the person's own among the claims.

use schemas::claim::Claimed;
use schemas::{AccountId, AggregateType, Event, OrgId, StreamId};

use crate::EventLog;

/// The kind of claim that records the runs.
const RUNS: &str = "runs about";

impl EventLog {
    /// The stream that records which runs hold data of a person.
    pub fn runs_about(&self, account: AccountId) -> StreamId {
        self.claim(RUNS, &account.to_string())
    }
}

/// The note that a run holds data of the person in whose stream it is.
pub fn note_of_run(run: &StreamId) -> Event {
    let holder = format!("{} {}", run.org, run.id);
    Event::ClaimClaimed(Claimed { holder })
}

/// The run of a note.
pub fn noted_run(note: &Event) -> Option<StreamId> {
    let Event::ClaimClaimed(Claimed { holder }) = note else {
        return None;
    };
    let (org, run) = holder.split_once(' ')?;
    Some(StreamId::new(&OrgId::from(org), AggregateType::Run, run))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noted_run_is_found_again_whatever_its_id() {
        for id in ["0b9e8a52-1111-4222-8333-444455556666", "a run", ""] {
            let run = StreamId::new(&OrgId::from("o1"), AggregateType::Run, id);
            assert_eq!(noted_run(&note_of_run(&run)), Some(run));
        }
        let other = Event::ClaimClaimed(Claimed {
            holder: "7".to_owned(),
        });
        assert_eq!(noted_run(&other), None);
    }
}
