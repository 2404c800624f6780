//! How every command is carried out: load, decide, append, and start over if another writer was
//! faster.
//!
//! Two have a loop of their own. Records written many at once are retried one by one
//! (`records/batch.rs`). A run that an `Idempotency-Key` names starts in an empty stream, so that a
//! conflict is the first request's answer (`workflows/trigger.rs`).

mod receipts;

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use chrono::{DateTime, Utc};
use event_log::{AppendError, CAUSE_HEADER, Commit, EventLog, Expected, Position, Write};
use schemas::{Actor, Context, Event, NewEvent, Receipt, Recorded, StreamId};
use service::{Clock, RequestContext};

use crate::{App, CommandError, Random};

pub(crate) use receipts::{Earlier, Repeated};

/// How often a decision is attempted before giving up; more than once is rare.
pub(crate) const ATTEMPTS: usize = 8;

/// Dependencies of commands.
#[derive(Clone)]
pub struct Commands {
    log: EventLog,
    clock: Arc<dyn Clock>,
    pub(crate) random: Random,
    /// How long a repeat with the same `Idempotency-Key` gets the first answer.
    receipts_last: Duration,
}

impl fmt::Debug for Commands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Commands")
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}

/// Where a command comes from.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The context that caused it.
    pub context: Context,
    /// Its receipt, if it came with an `Idempotency-Key`.
    pub receipt: Option<Receipt>,
}

impl Origin {
    /// The operator's command line.
    pub fn operator() -> Self {
        Self {
            context: Context {
                actor: Some(Actor::Operator),
                ..Context::default()
            },
            receipt: None,
        }
    }
}

impl FromRequestParts<App> for Origin {
    type Rejection = Infallible;

    /// The origin of a command sent with this request. One that follows from a call by Waypost
    /// itself continues that call's count of hops and of runs.
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        let request = RequestContext::from_request_parts(parts, app).await?;
        let mut context = request.context();
        let header = parts.headers.get(CAUSE_HEADER);
        let header = header.and_then(|value| value.to_str().ok());
        let keyring = app.commands.log().keyring();
        if let Some(call) = header.and_then(|header| keyring.context_of_call(header)) {
            context.hops = call.hops;
            context.cause = call.cause;
            context.correlation_id = call.correlation_id.or(context.correlation_id);
        }
        Ok(Self {
            context,
            receipt: None,
        })
    }
}

/// A command that was carried out.
#[derive(Clone, Debug)]
pub struct Done<T> {
    /// Its result.
    pub answer: T,
    /// Reads that wait for this position see it.
    pub position: Position,
}

impl<T> Done<T> {
    /// The same with the answer mapped.
    pub(crate) fn map<U>(self, make: impl FnOnce(T) -> U) -> Done<U> {
        Done {
            answer: make(self.answer),
            position: self.position,
        }
    }
}

/// How much of an aggregate's past a decision needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Past {
    /// Its last event.
    Last,
    /// All of it.
    Whole,
}

/// A decision: the answer, and the events that make it true (none if it is true already).
pub(crate) struct Decision<T> {
    pub(crate) answer: T,
    pub(crate) events: Vec<Event>,
}

impl<T> Decision<T> {
    pub(crate) fn new(answer: T, event: Option<Event>) -> Self {
        Self {
            answer,
            events: event.into_iter().collect(),
        }
    }
}

/// The outcome of a command that may be a repeat.
pub(crate) enum Outcome<T> {
    First(Done<T>),
    Repeat(Repeated),
}

impl<T> Outcome<T> {
    /// Returns the first answer. A repeat finds it `again` from what the first request made.
    pub(crate) fn answered(self, again: impl FnOnce(String) -> T) -> Done<T> {
        match self {
            Self::First(done) => done,
            Self::Repeat(repeated) => repeated.done(again),
        }
    }
}

/// The plan of a command.
pub(crate) enum Plan<T> {
    /// Nothing: it is true already.
    Nothing {
        done: Done<T>,
        /// What a repeat needs to find the first answer; `None` if the key need not be claimed,
        /// since a repeat can change nothing either, whatever happens in between.
        holder: Option<String>,
    },
    /// Writes, all or none.
    Write {
        answer: T,
        /// What a repeat needs to find the first answer.
        holder: String,
        writes: Vec<Write>,
    },
}

impl Commands {
    /// Creates commands on this log and the machine's clock.
    pub fn new(log: EventLog) -> Self {
        Self {
            log,
            clock: Arc::new(service::SystemClock),
            random: Random::default(),
            receipts_last: Duration::from_hours(24),
        }
    }

    /// The same with another clock.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// The same with another lifetime of receipts.
    #[must_use]
    pub fn with_receipts_lasting(self, receipts_last: Duration) -> Self {
        Self {
            receipts_last,
            ..self
        }
    }

    /// Returns the log.
    pub fn log(&self) -> &EventLog {
        &self.log
    }

    /// The time, truncated to the microseconds that the log stores, so that a first answer and its
    /// repeat are the same.
    pub fn now(&self) -> DateTime<Utc> {
        let now = self.clock.now();
        DateTime::from_timestamp_micros(now.timestamp_micros()).unwrap_or(now)
    }

    pub(crate) fn new_event(&self, origin: &Origin, now: DateTime<Utc>, event: Event) -> NewEvent {
        NewEvent {
            id: self.random.event_id(now),
            time: now,
            event,
            context: origin.context.clone(),
            receipt: origin.receipt.clone(),
        }
    }

    /// Carries out an idempotent command.
    pub(crate) async fn execute<T, R>(
        &self,
        origin: &Origin,
        stream: &StreamId,
        past: Past,
        decide: impl Fn(&[Recorded], DateTime<Utc>) -> Result<Decision<T>, R>,
    ) -> Result<Done<T>, CommandError<R>> {
        self.execute_plan(|| self.plan(origin, stream, past, "", &decide))
            .await
    }

    /// The same for a `plan`, made again whenever another writer was faster.
    pub(crate) async fn execute_plan<T, R, F>(
        &self,
        plan: impl Fn() -> F,
    ) -> Result<Done<T>, CommandError<R>>
    where
        F: Future<Output = Result<Plan<T>, CommandError<R>>>,
    {
        let attempt = || async {
            match plan().await? {
                Plan::Nothing { done, .. } => Ok(Some(done)),
                Plan::Write { answer, writes, .. } => {
                    let position = self.commit(writes).await?;
                    Ok(position.map(|position| Done { answer, position }))
                }
            }
        };
        until_written(attempt).await
    }

    /// Carries out a command at most once for each receipt. The receipt's key is claimed together
    /// with the command's own events, with `holder` as what a repeat needs to find the first
    /// answer.
    pub(crate) async fn execute_once<T, R>(
        &self,
        origin: &Origin,
        stream: &StreamId,
        past: Past,
        holder: &str,
        decide: impl Fn(&[Recorded], DateTime<Utc>) -> Result<Decision<T>, R>,
    ) -> Result<Outcome<T>, CommandError<R>> {
        let plan = || self.plan(origin, stream, past, holder, &decide);
        self.carry_out(origin, plan).await
    }

    /// Carries out a `plan` at most once for each receipt. It is made again whenever another writer
    /// was faster.
    pub(crate) async fn carry_out<T, R, F>(
        &self,
        origin: &Origin,
        plan: impl Fn() -> F,
    ) -> Result<Outcome<T>, CommandError<R>>
    where
        F: Future<Output = Result<Plan<T>, CommandError<R>>>,
    {
        let attempt = || async {
            let slot = match self.earlier(origin).await? {
                Earlier::None(slot) => slot,
                Earlier::Repeat(repeated) => return Ok(Some(Outcome::Repeat(repeated))),
            };
            let (answer, holder, mut writes) = match plan().await? {
                // The key is claimed all the same: its repeat must do nothing either, even if
                // someone else has changed the aggregate meanwhile.
                Plan::Nothing {
                    done,
                    holder: Some(holder),
                } if slot.is_some() => (done.answer, holder, Vec::new()),
                Plan::Nothing { done, .. } => return Ok(Some(Outcome::First(done))),
                Plan::Write {
                    answer,
                    holder,
                    writes,
                } => (answer, holder, writes),
            };
            // The claim comes last, so that its position is the whole command's.
            writes.extend(self.claiming(origin, slot, holder));
            let position = self.commit(writes).await?;
            Ok(position.map(|position| Outcome::First(Done { answer, position })))
        };
        until_written(attempt).await
    }

    /// Plans the writes of a decision on one aggregate.
    async fn plan<T, R>(
        &self,
        origin: &Origin,
        stream: &StreamId,
        past: Past,
        holder: &str,
        decide: impl FnOnce(&[Recorded], DateTime<Utc>) -> Result<Decision<T>, R>,
    ) -> Result<Plan<T>, CommandError<R>> {
        let past = match past {
            Past::Last => self.log.last(stream).await?.into_iter().collect(),
            Past::Whole => self.log.load(stream).await?,
        };
        let now = self.now();
        let decision = decide(&past, now).map_err(CommandError::Refused)?;
        let last = past.last().map(|last| last.sequence);
        Ok(self.planned(origin, now, (stream, last), holder, decision))
    }

    /// Plans the writes of a decision on one aggregate whose last event has the given sequence.
    pub(crate) fn planned<T>(
        &self,
        origin: &Origin,
        now: DateTime<Utc>,
        (stream, last): (&StreamId, Option<u64>),
        holder: &str,
        Decision { answer, events }: Decision<T>,
    ) -> Plan<T> {
        if events.is_empty() {
            let log = stream.aggregate.log();
            let position = self.log.position(log, last.unwrap_or_default());
            return Plan::Nothing {
                done: Done { answer, position },
                holder: Some(holder.to_owned()),
            };
        }
        let expected = Expected::after(last);
        Plan::Write {
            answer,
            holder: holder.to_owned(),
            writes: vec![self.write(origin, now, stream.clone(), expected, events)],
        }
    }

    /// Commits the writes. Returns their position, or `None` if another writer was faster.
    pub(crate) async fn commit(&self, writes: Vec<Write>) -> Result<Option<Position>, AppendError> {
        match self.log.commit(Commit { writes }).await {
            Err(AppendError::Conflict) => Ok(None),
            result => result.map(Some),
        }
    }

    /// One write of a command.
    pub(crate) fn write(
        &self,
        origin: &Origin,
        now: DateTime<Utc>,
        stream: StreamId,
        expected: Expected,
        events: Vec<Event>,
    ) -> Write {
        let events = events.into_iter();
        let events = events.map(|event| self.new_event(origin, now, event));
        Write {
            stream,
            expected,
            events: events.collect(),
        }
    }
}

/// Retries while an attempt returns `None`, which means that another writer was faster.
pub(crate) async fn until_written<T, E, F>(attempt: impl Fn() -> F) -> Result<T, E>
where
    E: From<AppendError>,
    F: Future<Output = Result<Option<T>, E>>,
{
    for _ in 0..ATTEMPTS {
        if let Some(made) = attempt().await? {
            return Ok(made);
        }
    }
    Err(AppendError::Conflict.into())
}

/// The expectation of a write that was decided on this past.
pub(crate) fn behind(past: &[Recorded]) -> Expected {
    Expected::after(past.last().map(|last| last.sequence))
}
