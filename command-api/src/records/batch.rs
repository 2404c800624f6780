//! Writes many records at once: one read of the current state, one shared append, and lines of the
//! same record in the order given.
//!
//! The current state is not read if the records are likely to be new: if that is wrong, the append
//! itself reports it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::record::{Draft, Kind};
use event_log::{AppendError, Commit, Expected, Position, Write};
use indexmap::IndexMap;
use schemas::{OrgId, Receipt, RecordId, Recorded, StreamId};

use super::past::{Decided, Known, Outcome, Past};
use super::unchanged::{self, Marks};
use crate::commands::ATTEMPTS;
use crate::{Commands, LogError, Origin};

/// The target of a write of records.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) org: &'a OrgId,
    pub(super) kind: Kind,
    pub(super) origin: &'a Origin,
    /// The name of the request's `Idempotency-Key`, if it came with one.
    pub(super) key: Option<&'a str>,
}

/// One record to write.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) id: RecordId,
    pub(super) draft: Draft,
    /// The receipt of this line, if its request came with an `Idempotency-Key`.
    pub(super) receipt: Option<LineReceipt>,
    /// No record can have its id, which was just generated.
    pub(super) is_new: bool,
}

/// The receipt of a line.
#[derive(Clone, Debug)]
pub(super) struct LineReceipt {
    pub(super) receipt: Receipt,
    /// The line's number.
    pub(super) line: u64,
}

impl Wanted {
    pub(super) fn new(id: RecordId, draft: Draft) -> Self {
        Self {
            id,
            draft,
            receipt: None,
            is_new: false,
        }
    }
}

/// Whether the records of one import or upload are likely to be new, as those before them were.
#[derive(Debug, Default)]
pub(super) struct Newness(AtomicBool);

impl Newness {
    fn is_likely(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn learn(&self, all_new: bool) {
        self.0.store(all_new, Ordering::Relaxed);
    }
}

/// Why one record was not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NotWritten {
    /// Unknown: the log did not confirm it.
    Unconfirmed,
    /// It cannot be written, for this reason.
    Refused(&'static str),
}

/// The outcome of each record, in the order given.
pub(super) struct Written {
    pub(super) outcomes: Vec<Outcome>,
    /// The position at which reads see all of it.
    pub(super) position: Option<Position>,
    /// Why some are unconfirmed.
    pub(super) trouble: Option<LogError>,
}

/// The indexes of the lines of each record.
type Groups = IndexMap<RecordId, Vec<usize>>;

/// A record's lines with the decision on them.
struct Deciding {
    id: RecordId,
    places: Vec<usize>,
    stream: StreamId,
    /// The sequence of the record's last event.
    last: Option<u64>,
    decided: Decided,
}

/// Writes records as far as the log confirms them.
pub(super) async fn write(
    commands: &Commands,
    target: Target<'_>,
    newness: &Newness,
    wanted: &[Wanted],
) -> Written {
    let mut written = Written::nothing(wanted.len());
    let mut open: Groups = IndexMap::with_capacity(wanted.len());
    for (place, one) in wanted.iter().enumerate() {
        open.entry(one.id.clone()).or_default().push(place);
    }
    for attempt in 0..ATTEMPTS {
        if open.is_empty() || written.trouble.is_some() {
            return written;
        }
        let lasts = if attempt == 0 && newness.is_likely() {
            Ok(vec![None; open.len()])
        } else {
            read(commands, target, newness, wanted, &open).await
        };
        let lasts = match lasts {
            Ok(lasts) => lasts,
            Err(error) => {
                written.trouble = Some(error);
                return written;
            }
        };
        open = written.attempt(commands, target, wanted, open, lasts).await;
        if attempt == 0 && !(open.is_empty() && written.trouble.is_none()) {
            newness.learn(false);
        }
    }
    for place in open.into_values().flatten() {
        written.outcomes[place] = Err(NotWritten::Refused("others keep changing this record"));
    }
    written
}

/// Reads the last event of each record. Those whose id was just generated have none.
async fn read(
    commands: &Commands,
    target: Target<'_>,
    newness: &Newness,
    wanted: &[Wanted],
    open: &Groups,
) -> Result<Vec<Option<Recorded>>, LogError> {
    let is_asked = |places: &Vec<usize>| !places.iter().all(|place| wanted[*place].is_new);
    let asked = open.iter().filter(|(_, places)| is_asked(places));
    let streams: Vec<StreamId> = asked.map(|(id, _)| target.stream(id)).collect();
    let mut found = commands.log().last_of_each(&streams).await?.into_iter();
    let lasts = open.values().map(|places| {
        let found = is_asked(places).then(|| found.next());
        found.flatten().flatten()
    });
    let lasts: Vec<_> = lasts.collect();
    newness.learn(lasts.iter().all(Option::is_none));
    Ok(lasts)
}

/// The numbers of the lines that may have changed nothing when they were written before: those of
/// existing records whose last event is not theirs.
fn maybe_unchanged(
    target: Target<'_>,
    wanted: &[Wanted],
    open: &Groups,
    lasts: &[Option<Recorded>],
) -> BTreeSet<u64> {
    let mut lines = BTreeSet::new();
    if target.key.is_none() {
        return lines;
    }
    for (places, last) in open.values().zip(lasts) {
        let Some(last) = last else {
            continue;
        };
        let last = last.receipt.as_ref().map(|receipt| &receipt.key);
        let receipts = places
            .iter()
            .filter_map(|&place| wanted[place].receipt.as_ref());
        let others = receipts.filter(|own| Some(&own.receipt.key) != last);
        lines.extend(others.map(|own| own.line));
    }
    lines
}

impl Target<'_> {
    fn stream(&self, id: &RecordId) -> StreamId {
        StreamId::new(self.org, self.kind.aggregate(), id.as_str())
    }
}

impl Written {
    /// The outcome of records before any write was attempted.
    pub(super) fn nothing(records: usize) -> Self {
        Self {
            outcomes: vec![Err(NotWritten::Unconfirmed); records],
            position: None,
            trouble: None,
        }
    }

    /// Returns what must be retried because other writers were faster.
    async fn attempt(
        &mut self,
        commands: &Commands,
        target: Target<'_>,
        wanted: &[Wanted],
        open: Groups,
        lasts: Vec<Option<Recorded>>,
    ) -> Groups {
        let deciding = self.decide(commands, target, wanted, open, lasts).await;
        match deciding {
            Ok(deciding) => self.commit(commands, target, deciding).await,
            Err(error) => {
                self.trouble = Some(error);
                Groups::new()
            }
        }
    }

    /// Decides on the lines of each record. Afterwards the log holds the receipts of those that
    /// change nothing: they must be there before a later line of the same record is written, so
    /// that a repeat does not write the earlier one over it.
    async fn decide(
        &mut self,
        commands: &Commands,
        target: Target<'_>,
        wanted: &[Wanted],
        open: Groups,
        lasts: Vec<Option<Recorded>>,
    ) -> Result<Vec<Deciding>, LogError> {
        let lines = maybe_unchanged(target, wanted, &open, &lasts);
        let now = commands.now();
        let known = Known {
            since: commands.receipts_since(now),
            marks: unchanged::known(commands, target, &lines).await?,
        };
        let (mut deciding, mut unchanged) = (Vec::with_capacity(open.len()), Marks::new());
        for ((id, places), last) in open.into_iter().zip(lasts) {
            let stream = target.stream(&id);
            let past = match Past::of(commands, &stream, last, wanted, &places, &known).await {
                Ok(past) => past,
                Err(error) => {
                    self.trouble = Some(error);
                    continue;
                }
            };
            let mut decided = past.decide(commands, target, wanted, &places, now);
            unchanged.append(&mut decided.unchanged);
            deciding.push(Deciding {
                id,
                places,
                stream,
                last: past.last.map(|last| last.sequence),
                decided,
            });
        }
        let position = unchanged::remember(commands, target, unchanged).await?;
        self.reach(position);
        Ok(deciding)
    }

    /// Writes what was decided. Returns what must be retried.
    async fn commit(
        &mut self,
        commands: &Commands,
        target: Target<'_>,
        all: Vec<Deciding>,
    ) -> Groups {
        let log = target.kind.aggregate().log();
        let (mut commits, mut deciding) = (Vec::new(), Vec::new());
        for one in all {
            let Decided {
                outcomes, events, ..
            } = one.decided;
            if events.is_empty() {
                self.settle(outcomes);
                self.reach(one.last.map(|last| commands.log().position(log, last)));
            } else {
                commits.push(Commit::from(Write {
                    stream: one.stream,
                    expected: Expected::after(one.last),
                    events,
                }));
                deciding.push((one.id, one.places, outcomes));
            }
        }
        let results = commands.log().commit_each(commits).await;
        let mut again = Groups::new();
        for (result, (id, places, outcomes)) in results.into_iter().zip(deciding) {
            match result {
                Ok(position) => {
                    self.settle(outcomes);
                    self.reach(Some(position));
                }
                Err(AppendError::Conflict) => {
                    again.insert(id, places);
                }
                Err(AppendError::TooLarge) => {
                    let refused = Err(NotWritten::Refused("the record is too large"));
                    self.settle(
                        places
                            .into_iter()
                            .map(|place| (place, refused.clone()))
                            .collect(),
                    );
                }
                Err(error) => self.trouble = Some(error.into()),
            }
        }
        again
    }

    fn settle(&mut self, outcomes: Vec<(usize, Outcome)>) {
        for (place, outcome) in outcomes {
            self.outcomes[place] = outcome;
        }
    }

    /// Moves its position forward.
    pub(super) fn reach(&mut self, position: Option<Position>) {
        let further = |old: Position| position.is_some_and(|new| new.sequence() > old.sequence());
        if self.position.is_none_or(further) {
            self.position = position.or(self.position);
        }
    }
}
