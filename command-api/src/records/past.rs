//! What a record's past says about lines for it, and the decisions on them.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use domain::location::CLOCKS_APART;
use domain::record::{self, Change};
use schemas::{NewEvent, Recorded, StreamId};

use super::batch::{LineReceipt, NotWritten, Target, Wanted};
use super::unchanged::{Marks, mark};
use crate::{Commands, LogError};

/// The outcome of one line.
pub(super) type Outcome = Result<Change, NotWritten>;

/// A record's past, as far as a decision needs it.
pub(super) struct Past {
    pub(super) last: Option<Recorded>,
    /// The first answers to lines that were written before, by their places.
    answers: HashMap<usize, Outcome>,
}

/// What is known of all lines that are written together.
pub(super) struct Known {
    /// Receipts are valid if they are younger than this.
    pub(super) since: DateTime<Utc>,
    /// The marks of lines that changed nothing when they were written before.
    pub(super) marks: Marks,
}

/// The decision on a record's lines.
pub(super) struct Decided {
    pub(super) outcomes: Vec<(usize, Outcome)>,
    pub(super) events: Vec<NewEvent>,
    /// The marks of lines with a receipt that change nothing.
    pub(super) unchanged: Marks,
}

/// Finds the first answers to lines of one record.
struct Search<'w> {
    /// The places and receipts of the lines, by the keys of their receipts.
    lines: HashMap<&'w str, (usize, &'w LineReceipt)>,
    /// Receipts are valid if they are younger than this.
    since: DateTime<Utc>,
    answers: HashMap<usize, Outcome>,
}

impl Past {
    /// The past of a record after its last event. Its earlier ones are searched only for receipts,
    /// only if a line may be a repeat, and only as far back as receipts are valid.
    pub(super) async fn of(
        commands: &Commands,
        stream: &StreamId,
        last: Option<Recorded>,
        wanted: &[Wanted],
        places: &[usize],
        Known { since, marks }: &Known,
    ) -> Result<Self, LogError> {
        let mut search = Search::new(wanted, places, *since);
        if let Some(last) = last.as_ref().filter(|_| !search.is_over()) {
            search.note(last);
            search.note_unchanged(marks);
            let from = *since - CLOCKS_APART;
            if !search.is_over() && last.time >= from {
                let note = |page: Vec<Recorded>| {
                    for event in &page {
                        search.note(event);
                    }
                };
                commands.log().pages_since(stream, from, note).await?;
            }
        }
        Ok(Self {
            last,
            answers: search.answers,
        })
    }

    /// Decides line by line, each on the result of the line before it.
    pub(super) fn decide(
        &self,
        commands: &Commands,
        target: Target<'_>,
        wanted: &[Wanted],
        places: &[usize],
        now: DateTime<Utc>,
    ) -> Decided {
        let mut decided = Decided {
            outcomes: Vec::with_capacity(places.len()),
            events: Vec::new(),
            unchanged: Marks::new(),
        };
        for &place in places {
            if let Some(outcome) = self.answers.get(&place) {
                decided.outcomes.push((place, outcome.clone()));
                continue;
            }
            let one = &wanted[place];
            let last = decided.events.last().map(|new| &new.event);
            let last = last.or(self.last.as_ref().map(|recorded| &recorded.event));
            let (change, event) = record::put(one.id.clone(), one.draft.clone(), last, now);
            decided.outcomes.push((place, Ok(change)));
            let receipt = one.receipt.as_ref();
            if let Some(event) = event {
                let mut new = commands.new_event(target.origin, now, event);
                new.receipt = receipt.map(|own| own.receipt.clone());
                decided.events.push(new);
            } else if let Some(own) = receipt {
                decided.unchanged.insert(own.line, mark(own).to_owned());
            }
        }
        decided
    }
}

impl<'w> Search<'w> {
    fn new(wanted: &'w [Wanted], places: &[usize], since: DateTime<Utc>) -> Self {
        let receipts = places.iter().filter_map(|&place| {
            let own = wanted[place].receipt.as_ref()?;
            Some((own.receipt.key.as_str(), (place, own)))
        });
        Self {
            lines: receipts.collect(),
            since,
            answers: HashMap::new(),
        }
    }

    /// Whether it has all answers that there can be.
    fn is_over(&self) -> bool {
        self.answers.len() == self.lines.len()
    }

    /// Takes the answer from an event that one of the lines caused.
    fn note(&mut self, event: &Recorded) {
        let Some(receipt) = event.receipt.as_ref().filter(|_| event.time > self.since) else {
            return;
        };
        let Some(&(place, own)) = self.lines.get(receipt.key.as_str()) else {
            return;
        };
        let change = record::change_of(&event.event);
        if let Some(answer) = first_answer(own.receipt == *receipt, change) {
            self.answers.insert(place, answer);
        }
    }

    /// Takes the answers of lines that changed nothing from their marks.
    fn note_unchanged(&mut self, marks: &Marks) {
        for &(place, own) in self.lines.values() {
            let answer = marks.get(&own.line).and_then(|first| {
                let is_same = first == mark(own);
                first_answer(is_same, Some(Change::Unchanged))
            });
            if let Some(answer) = answer {
                self.answers.entry(place).or_insert(answer);
            }
        }
    }
}

/// The answer to a line whose number was used before: for the same line, what it did then.
fn first_answer(is_same: bool, change: Option<Change>) -> Option<Outcome> {
    if is_same {
        change.map(Ok)
    } else {
        let reason = "this Idempotency-Key was used with another line";
        Some(Err(NotWritten::Refused(reason)))
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use domain::record::{Kind, parse_object};
    use schemas::{AggregateType, Context, EventId, OrgId, Receipt, RecordId};
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    const SINCE: DateTime<Utc> = DateTime::UNIX_EPOCH;

    fn receipt(key: &str, fingerprint: &str) -> Receipt {
        Receipt {
            key: key.to_owned(),
            fingerprint: fingerprint.to_owned(),
        }
    }

    /// Line `line` of an upload.
    fn wanted(line: u64) -> Wanted {
        let object = json!({"email": "a@b.c"}).as_object().cloned().unwrap();
        let draft = parse_object(Kind::Contacts, object).unwrap();
        let receipt = receipt(&format!("line {line}"), &format!("content of {line}"));
        Wanted {
            receipt: Some(LineReceipt { receipt, line }),
            ..Wanted::new(RecordId::from("a"), draft)
        }
    }

    /// The creation of the record under this receipt, so long after receipts began to be valid.
    fn created(receipt: Receipt, after: TimeDelta) -> Recorded {
        let one = wanted(1);
        let (_, event) = record::put(one.id, one.draft, None, SINCE);
        Recorded {
            sequence: 1,
            stream: StreamId::new(&OrgId::from("o"), AggregateType::Contact, "a"),
            id: EventId(Uuid::nil()),
            time: SINCE + after,
            event: event.unwrap(),
            context: Context::default(),
            receipt: Some(receipt),
        }
    }

    #[test]
    fn only_valid_receipts_of_the_lines_are_found() {
        let (lines, later) = ([wanted(1), wanted(2), wanted(3)], TimeDelta::seconds(1));
        let mut search = Search::new(&lines, &[0, 1, 2], SINCE);
        search.note(&created(receipt("line 1", "content of 1"), later));
        search.note(&created(receipt("line 2", "content of 1"), later));
        search.note(&created(receipt("line 3", "content of 3"), -later));
        search.note(&created(receipt("line 4", "content of 4"), later));
        assert_eq!(search.answers.len(), 2);
        assert_eq!(search.answers[&0], Ok(Change::Created));
        let refused = &search.answers[&1];
        assert!(
            matches!(refused, Err(NotWritten::Refused(_))),
            "{refused:?}"
        );
        assert!(!search.is_over(), "the third one is not found yet");
    }

    #[test]
    fn lines_that_changed_nothing_are_known_by_their_marks() {
        let lines = [wanted(7), wanted(8), wanted(9)];
        let mut search = Search::new(&lines, &[0, 1, 2], SINCE);
        search.note(&created(
            receipt("line 9", "content of 9"),
            TimeDelta::seconds(1),
        ));
        let marked = |line: u64, as_if: u64| {
            let as_if = wanted(as_if);
            (line, mark(as_if.receipt.as_ref().unwrap()).to_owned())
        };
        search.note_unchanged(&[marked(7, 7), marked(8, 1), marked(9, 9)].into());
        assert_eq!(search.answers[&0], Ok(Change::Unchanged));
        let refused = &search.answers[&1];
        assert!(
            matches!(refused, Err(NotWritten::Refused(_))),
            "{refused:?}"
        );
        assert_eq!(
            search.answers[&2],
            Ok(Change::Created),
            "an event says more"
        );
        assert!(search.is_over());
    }
}
