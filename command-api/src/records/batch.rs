//! Writes many records at once: one read of the current state, one shared append, and lines of the
//! same record in the order given.
//!
//! The current state is not read if the records are likely to be new: if that is wrong, the append
//! itself reports it.

use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{DateTime, Utc};
use domain::record::{self, Change, Draft, Kind};
use event_log::{AppendError, Commit, Expected, Position, Write};
use indexmap::IndexMap;
use schemas::{NewEvent, OrgId, Receipt, RecordId, Recorded, StreamId};

use crate::commands::ATTEMPTS;
use crate::{Commands, LogError, Origin};

/// The target of a write of records.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) org: &'a OrgId,
    pub(super) kind: Kind,
    pub(super) origin: &'a Origin,
}

/// One record to write.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) id: RecordId,
    pub(super) draft: Draft,
    /// The receipt of this line, if its request came with an `Idempotency-Key`.
    pub(super) receipt: Option<Receipt>,
    /// No record can have its id, which was just generated.
    pub(super) is_new: bool,
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
    pub(super) outcomes: Vec<Result<Change, NotWritten>>,
    /// The position at which reads see all of it.
    pub(super) position: Option<Position>,
    /// Why some are unconfirmed.
    pub(super) trouble: Option<LogError>,
}

/// The indexes of the lines of each record.
type Groups = IndexMap<RecordId, Vec<usize>>;

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
        let aggregate = target.kind.aggregate();
        let now = commands.now();
        let (mut commits, mut deciding) = (Vec::new(), Vec::new());
        for ((id, places), last) in open.into_iter().zip(lasts) {
            let stream = target.stream(&id);
            let past = match Past::of(commands, &stream, last, wanted, &places).await {
                Ok(past) => past,
                Err(error) => {
                    self.trouble = Some(error);
                    continue;
                }
            };
            let decided = decide(commands, target, &past, wanted, &places, now);
            if decided.events.is_empty() {
                self.settle(decided.outcomes);
                self.reach(
                    past.last
                        .map(|last| commands.log().position(aggregate.log(), last.sequence)),
                );
            } else {
                let expected = Expected::after(past.last.map(|last| last.sequence));
                let events = decided.events;
                commits.push(Commit::from(Write {
                    stream,
                    expected,
                    events,
                }));
                deciding.push((id, places, decided.outcomes));
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

    fn settle(&mut self, outcomes: Vec<(usize, Result<Change, NotWritten>)>) {
        for (place, outcome) in outcomes {
            self.outcomes[place] = outcome;
        }
    }

    fn reach(&mut self, position: Option<Position>) {
        let further = |old: Position| position.is_some_and(|new| new.sequence() > old.sequence());
        if self.position.is_none_or(further) {
            self.position = position.or(self.position);
        }
    }
}

/// The events of a record that a decision needs.
struct Past {
    last: Option<Recorded>,
    /// Its earlier events, read only if a line may be a repeat.
    earlier: Vec<Recorded>,
}

impl Past {
    async fn of(
        commands: &Commands,
        stream: &StreamId,
        last: Option<Recorded>,
        wanted: &[Wanted],
        places: &[usize],
    ) -> Result<Self, LogError> {
        let mut past = Self {
            last,
            earlier: Vec::new(),
        };
        let unknown = |place: &usize| {
            let receipt = wanted[*place].receipt.as_ref();
            receipt.is_some_and(|receipt| past.last.is_some() && past.find(receipt).is_none())
        };
        if places.iter().any(unknown) {
            past.earlier = commands.log().load(stream).await?;
        }
        Ok(past)
    }

    /// The event that a line with this receipt caused before.
    fn find(&self, receipt: &Receipt) -> Option<&Recorded> {
        let of_key = |recorded: &&Recorded| {
            recorded
                .receipt
                .as_ref()
                .is_some_and(|known| known.key == receipt.key)
        };
        let events = self.last.iter().chain(&self.earlier);
        events
            .filter(of_key)
            .max_by_key(|recorded| recorded.sequence)
    }
}

struct Decided {
    outcomes: Vec<(usize, Result<Change, NotWritten>)>,
    events: Vec<NewEvent>,
}

/// Decides line by line, each on the result of the line before it.
fn decide(
    commands: &Commands,
    target: Target<'_>,
    past: &Past,
    wanted: &[Wanted],
    places: &[usize],
    now: DateTime<Utc>,
) -> Decided {
    let mut decided = Decided {
        outcomes: Vec::with_capacity(places.len()),
        events: Vec::new(),
    };
    for &place in places {
        let one = &wanted[place];
        if let Some(outcome) = repeated(commands, past, one) {
            decided.outcomes.push((place, outcome));
            continue;
        }
        let last = decided.events.last().map(|new| &new.event);
        let last = last.or(past.last.as_ref().map(|recorded| &recorded.event));
        let (change, event) = record::put(one.id.clone(), one.draft.clone(), last, now);
        decided.outcomes.push((place, Ok(change)));
        if let Some(event) = event {
            let mut new = commands.new_event(target.origin, now, event);
            new.receipt.clone_from(&one.receipt);
            decided.events.push(new);
        }
    }
    decided
}

/// The first answer to a line that was written before under the same receipt.
fn repeated(commands: &Commands, past: &Past, one: &Wanted) -> Option<Result<Change, NotWritten>> {
    let receipt = one.receipt.as_ref()?;
    let known = past
        .find(receipt)
        .filter(|known| commands.is_fresh(known.time))?;
    if known.receipt.as_ref() != Some(receipt) {
        let reason = "this Idempotency-Key was used with another line";
        return Some(Err(NotWritten::Refused(reason)));
    }
    record::change_of(&known.event).map(Ok)
}
