//! Writes one batch in one transaction: rows, dead letters, and the position.

use std::collections::HashSet;
use std::mem;

use event_log::{EventLog, Item};
use schemas::{AggregateType, Event, Log, Recorded};
use sqlx::{Connection as _, Executor as _, PgConnection};

use crate::checkpoint::{Checkpoint, Step, are_current};
use crate::dead_letters::{self, Fate, NewDeadLetter, ParkedAggregates};
use crate::error::WriteError;
use crate::projection::Projection;
use crate::skips;

/// From this number of events on, a batch has its statements planned again: next to its rows that
/// costs nothing, and tables that grow by such batches soon need other plans than empty ones.
const PLANNED_ANEW: usize = 1_000;

/// A projection with its parked aggregates and skipped events.
pub(crate) struct Member {
    pub(crate) projection: Box<dyn Projection>,
    pub(crate) generation: i64,
    pub(crate) parked: ParkedAggregates,
    /// The events that it was asked to skip.
    pub(crate) skipped: HashSet<u64>,
}

/// Projections of one log that are at the same position and move together.
pub(crate) struct Group {
    pub(crate) log: Log,
    pub(crate) epoch: u32,
    pub(crate) position: u64,
    pub(crate) members: Vec<Member>,
    /// Whether readers wait for these rows.
    pub(crate) notifies_readers: bool,
}

impl Member {
    /// Loads the state of a projection from the database.
    pub(crate) async fn load(
        rows: &mut PgConnection,
        projection: Box<dyn Projection>,
        checkpoint: &Checkpoint,
    ) -> Result<Self, sqlx::Error> {
        let name = projection.name();
        Ok(Self {
            parked: dead_letters::parked(&mut *rows, name).await?,
            skipped: skips::of(rows, name, checkpoint.epoch).await?,
            generation: checkpoint.generation,
            projection,
        })
    }

    fn name(&self) -> &'static str {
        self.projection.name()
    }

    fn concerns(&self, aggregate: AggregateType) -> bool {
        self.projection.aggregates().contains(&aggregate)
    }

    /// The items of a batch for this projection, without those it was asked to skip.
    fn wanted<'a>(&self, items: &'a [Item]) -> impl Iterator<Item = &'a Item> {
        items.iter().filter(|item| {
            (self.skipped.is_empty() || !self.skipped.contains(&item.sequence()))
                && match item {
                    Item::Event(event) => self.concerns(event.stream.aggregate),
                    Item::Undecodable { subject, .. } => self.concerns_subject(subject),
                }
        })
    }

    /// How many items of a batch are for this projection.
    pub(crate) fn count(&self, items: &[Item]) -> usize {
        self.wanted(items).count()
    }

    /// The events of a batch that this projection folds.
    fn events<'a>(&self, items: &'a [Item]) -> Vec<&'a Recorded> {
        self.wanted(items).filter_map(Item::event).collect()
    }

    /// Whether all its events of a batch can be tried at once.
    fn is_plain(&self, items: &[Item]) -> bool {
        let is_event = |item: &Item| matches!(item, Item::Event(_));
        self.parked.is_empty() && (items.iter().all(is_event) || self.wanted(items).all(is_event))
    }

    fn concerns_subject(&self, subject: &str) -> bool {
        EventLog::kind_of(subject).is_some_and(|kind| self.concerns(kind))
    }
}

impl Group {
    /// A group of other members at the same position.
    pub(crate) fn with(&self, members: Vec<Member>) -> Self {
        Self { members, ..*self }
    }

    /// Whether any of the items is for one of its projections.
    pub(crate) fn wants(&self, items: &[Item]) -> bool {
        let mut members = self.members.iter();
        members.any(|member| member.wanted(items).next().is_some())
    }

    /// Writes the items that follow the group's position up to `to`, all or none.
    pub(crate) async fn write(
        &mut self,
        session: &mut PgConnection,
        log: &EventLog,
        items: &[Item],
        to: u64,
    ) -> Result<(), WriteError> {
        if items.len() >= PLANNED_ANEW {
            // While a table is almost empty, the planner takes any of the indexes that fit.
            session.execute("DISCARD PLANS").await?;
        }
        let plain = self.members.iter().all(|member| member.is_plain(items));
        let written = plain && self.write_plainly(session, items, to).await?;
        if !written {
            self.write_carefully(session, log, items, to).await?;
        }
        self.position = to;
        Ok(())
    }

    /// Gives every projection its events at once. Returns `false`, with nothing written, if one of
    /// the events is to blame for an error.
    async fn write_plainly(
        &mut self,
        session: &mut PgConnection,
        items: &[Item],
        to: u64,
    ) -> Result<bool, WriteError> {
        let mut transaction = session.begin().await?;
        self.step(&mut transaction, items, to).await?;
        for member in &mut self.members {
            let events = member.events(items);
            if events.is_empty() {
                continue;
            }
            match member.projection.apply(&mut transaction, &events).await {
                Ok(()) => {}
                Err(error) if error.blames_an_event() => {
                    transaction.rollback().await?;
                    return Ok(false);
                }
                Err(error) => return Err(error.into()),
            }
        }
        transaction.commit().await?;
        Ok(true)
    }

    /// Finds the events that cannot be applied and puts them aside with all that wait for them.
    async fn write_carefully(
        &mut self,
        session: &mut PgConnection,
        log: &EventLog,
        items: &[Item],
        to: u64,
    ) -> Result<(), WriteError> {
        let mut transaction = session.begin().await?;
        self.step(&mut transaction, items, to).await?;
        let mut parked = Vec::new();
        for member in &mut self.members {
            let mut sorting = Sorting {
                log,
                parked: member.parked.clone(),
                dead_letters: Vec::new(),
            };
            let events = sorting.sort(member, items);
            sorting.apply(member, &mut transaction, events).await?;
            sorting
                .dead_letters
                .sort_unstable_by_key(|one| one.sequence);
            dead_letters::keep(
                &mut transaction,
                self.log,
                member.name(),
                &sorting.dead_letters,
            )
            .await?;
            report(member.name(), &sorting.dead_letters);
            parked.push(sorting.parked);
        }
        transaction.commit().await?;
        for (member, parked) in self.members.iter_mut().zip(parked) {
            member.parked = parked;
        }
        Ok(())
    }

    fn known(&self) -> (Vec<&'static str>, Vec<i64>) {
        let members = self.members.iter();
        members.map(|one| (one.name(), one.generation)).unzip()
    }

    /// Fails if another process has changed the rows of one of the projections.
    pub(crate) async fn check(&self, rows: &mut PgConnection) -> Result<(), WriteError> {
        let (names, generations) = self.known();
        if are_current(rows, &names, &generations).await? {
            Ok(())
        } else {
            Err(WriteError::Overtaken)
        }
    }

    /// Takes the step first: a projector that is no longer the active one finds out here.
    async fn step(
        &self,
        rows: &mut PgConnection,
        items: &[Item],
        to: u64,
    ) -> Result<(), WriteError> {
        let last = items.last().and_then(Item::event);
        let (names, generations) = self.known();
        let step = Step {
            log: self.log,
            epoch: self.epoch,
            names: &names,
            generations: &generations,
            from: self.position,
            to,
            event: last.filter(|last| last.sequence == to).map(|last| last.id),
            notifies_readers: self.notifies_readers,
        };
        if step.take(rows).await? {
            Ok(())
        } else {
            Err(WriteError::Overtaken)
        }
    }
}

/// Separates the events that can be applied from those that cannot.
struct Sorting<'a> {
    log: &'a EventLog,
    parked: ParkedAggregates,
    dead_letters: Vec<NewDeadLetter<'a>>,
}

impl<'a> Sorting<'a> {
    /// Puts aside items that cannot be read or have to wait; returns the rest.
    fn sort(&mut self, member: &Member, items: &'a [Item]) -> Vec<&'a Recorded> {
        let mut events = Vec::new();
        for item in member.wanted(items) {
            match item {
                Item::Event(event) => {
                    if ends_its_aggregate(&event.event) {
                        self.end(event, &mut events);
                    }
                    if !self.waits(event) {
                        events.push(event);
                    }
                }
                Item::Undecodable {
                    sequence,
                    subject,
                    reason,
                } => self.put_aside(*sequence, subject.clone(), None, reason.clone()),
            }
        }
        events
    }

    /// Events before the end of an aggregate have no effect any more and must not be kept, and the
    /// end waits for none of them.
    fn end(&mut self, end: &Recorded, events: &mut Vec<&'a Recorded>) {
        let subject = self.log.subject_of(&end.stream);
        events.retain(|event| event.stream != end.stream);
        self.dead_letters.retain(|one| one.subject != subject);
        self.parked.release(&subject);
    }

    /// Applies as many events at a time as succeed together, down to single ones that do not.
    async fn apply(
        &mut self,
        member: &mut Member,
        rows: &mut PgConnection,
        events: Vec<&'a Recorded>,
    ) -> Result<(), WriteError> {
        let mut rest = vec![events];
        while let Some(mut events) = rest.pop() {
            events.retain(|event| !self.waits(event));
            if events.is_empty() {
                continue;
            }
            let mut savepoint = rows.begin().await?;
            let error = match member.projection.apply(&mut savepoint, &events).await {
                Ok(()) => {
                    savepoint.commit().await?;
                    continue;
                }
                Err(error) if error.blames_an_event() => error,
                Err(error) => return Err(error.into()),
            };
            savepoint.rollback().await?;
            if let [event] = events[..] {
                let subject = self.log.subject_of(&event.stream);
                self.put_aside(event.sequence, subject, Some(event), error.to_string());
            } else {
                let later = events.split_off(events.len() / 2);
                rest.push(later);
                rest.push(mem::take(&mut events));
            }
        }
        Ok(())
    }

    /// Whether an event has to wait; if so it is put aside.
    fn waits(&mut self, event: &'a Recorded) -> bool {
        if self.parked.is_empty() {
            return false;
        }
        let subject = self.log.subject_of(&event.stream);
        let Some(behind) = self.parked.behind(&subject) else {
            return false;
        };
        // Events before the one that could not be read are not held up by it.
        if event.sequence < behind {
            return false;
        }
        self.dead_letters.push(NewDeadLetter {
            sequence: event.sequence,
            subject,
            event: Some(event),
            fate: Fate::Waits(behind),
        });
        true
    }

    fn put_aside(
        &mut self,
        sequence: u64,
        subject: String,
        event: Option<&'a Recorded>,
        reason: String,
    ) {
        let fate = match self.parked.behind(&subject) {
            Some(behind) if behind < sequence => Fate::Waits(behind),
            _ => {
                // A later event that cannot be read is found before any event is applied.
                let later = self.dead_letters.iter_mut();
                for later in later.filter(|one| one.subject == subject && one.sequence > sequence) {
                    later.fate = Fate::Waits(sequence);
                }
                self.parked.park(&subject, sequence);
                Fate::Refused(reason)
            }
        };
        self.dead_letters.push(NewDeadLetter {
            sequence,
            subject,
            event,
            fate,
        });
    }
}

/// Whether an event makes everything before it in its aggregate meaningless. Some of that may be
/// erased already, so that the rest cannot be applied.
fn ends_its_aggregate(event: &Event) -> bool {
    matches!(event, Event::AccountForgotten(_) | Event::RunForgotten(_))
}

fn report(projection: &'static str, dead_letters: &[NewDeadLetter<'_>]) {
    for one in dead_letters {
        if let Fate::Refused(_) = one.fate {
            // The reason may quote the event, so it is stored only in the table.
            tracing::error!(
                projection,
                sequence = one.sequence,
                "Dead letter: an event cannot be applied, and later events of its aggregate wait \
                 behind it"
            );
        }
    }
}
