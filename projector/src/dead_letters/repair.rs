//! What an operator can do about dead letters: retry or skip them.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use event_log::EventLog;
use schemas::Log;
use serde::Serialize;
use sqlx::{Connection as _, PgConnection, PgPool};

use crate::batch::Member;
use crate::checkpoint::{self, Checkpoint, log_name};
use crate::connect;
use crate::error::RepairError;
use crate::projection::{self, Role, bigint};
use crate::retry::{Budget, Remaining, UNTRIED, retry_aggregate};

/// The events of one transaction, for which the active projector waits with all projections of the
/// log. Thousands may wait behind a dead letter.
const EVENTS: usize = 100;
/// How long one transaction may go on to further events: each is read from the log.
const WITHIN: Duration = Duration::from_secs(1);

/// The result of a repair.
#[derive(Clone, Debug, Serialize)]
pub struct Repaired {
    /// The event that was put aside.
    pub id: String,
    /// Events of its aggregate that are now applied.
    pub applied: usize,
    /// Events of its aggregate that still wait.
    pub waiting: usize,
    /// Why the first of these cannot be applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An event that was put aside, by its projection and its sequence.
struct Id {
    projection: String,
    sequence: u64,
}

/// Retries a dead letter, and then the events that wait behind it.
///
/// # Errors
/// If there is no such event, or the log or the database does not answer.
pub async fn retry_letter(
    log: &EventLog,
    pool: &PgPool,
    id: &str,
) -> Result<Repaired, RepairError> {
    Box::pin(repair(log, pool, id, false)).await
}

/// Skips a dead letter for good, and applies the events that wait behind it.
///
/// # Errors
/// As [`retry_letter`].
pub async fn skip_letter(log: &EventLog, pool: &PgPool, id: &str) -> Result<Repaired, RepairError> {
    Box::pin(repair(log, pool, id, true)).await
}

async fn repair(
    log: &EventLog,
    pool: &PgPool,
    given: &str,
    skip: bool,
) -> Result<Repaired, RepairError> {
    let Id {
        projection,
        sequence,
    } = Id::parse(given)?;
    let repaired = repair_each(log, pool, &projection, &[sequence], skip).await?;
    repaired
        .into_iter()
        .next()
        .unwrap_or_else(|| Err(unknown(given)))
}

/// Retries or skips dead letters of one projection, in as many transactions as it takes; returns
/// each result. If one of them fails, what the earlier ones have done stays.
///
/// # Errors
/// If the log or the database does not answer. A missing dead letter has its own result.
pub(crate) async fn repair_each(
    log: &EventLog,
    pool: &PgPool,
    projection: &str,
    sequences: &[u64],
    skip: bool,
) -> Result<Vec<Result<Repaired, RepairError>>, RepairError> {
    let letters = sequences.iter().map(|sequence| Letter {
        id: Id {
            projection: projection.to_owned(),
            sequence: *sequence,
        },
        begun: None,
        skip,
    });
    let mut letters: VecDeque<_> = letters.collect();
    let mut session = connect::repairer(pool).await?;
    let mut all = Vec::with_capacity(letters.len());
    while !letters.is_empty() {
        let mut transaction = session.begin().await?;
        let mut part = Part::begin(log, &mut transaction, projection).await?;
        let repaired = part.repair(&mut transaction, &mut letters).await?;
        if repaired.iter().any(Result::is_ok) {
            // The active projector finds that the rows are not those it knew. As long as some of an
            // aggregate's events wait, it is right that further ones have to, and it goes on.
            changed(&mut transaction, projection).await?;
        }
        transaction.commit().await?;
        all.extend(repaired);
    }
    Ok(all)
}

/// A dead letter to repair.
struct Letter {
    id: Id,
    /// Its aggregate, and how many of its events are done, if a transaction has ended in between.
    begun: Option<(String, usize)>,
    skip: bool,
}

/// One transaction of a repair, for which the active projector waits.
struct Part<'a> {
    log: &'a EventLog,
    feed: Log,
    known: Checkpoint,
    member: Member,
    budget: Budget,
}

impl<'a> Part<'a> {
    async fn begin(
        log: &'a EventLog,
        rows: &mut PgConnection,
        projection: &str,
    ) -> Result<Self, RepairError> {
        let found = projection::named(projection, log, Role::Serving);
        let (feed, folding) = found.ok_or_else(|| unknown(projection))?;
        let known = locked(rows, projection).await?;
        known.fits(log, feed).await?;
        Ok(Self {
            log,
            feed,
            member: Member::load(rows, folding, &known).await?,
            known,
            budget: Budget::of(EVENTS, WITHIN),
        })
    }

    /// Repairs as many of the letters as one transaction may. They leave the queue; one that is only
    /// begun stays at its front.
    async fn repair(
        &mut self,
        rows: &mut PgConnection,
        letters: &mut VecDeque<Letter>,
    ) -> Result<Vec<Result<Repaired, RepairError>>, RepairError> {
        let mut all = Vec::new();
        while let Some(letter) = letters.front_mut() {
            match self.go_on(rows, letter).await {
                Ok(Some(repaired)) => all.push(Ok(repaired)),
                Ok(None) => break,
                Err(error @ RepairError::Letter(_)) => all.push(Err(error)),
                Err(error) => return Err(error),
            }
            letters.pop_front();
            if self.budget.is_spent() {
                break;
            }
        }
        Ok(all)
    }

    /// Goes on with a letter; returns `None` if some is left for another transaction.
    async fn go_on(
        &mut self,
        rows: &mut PgConnection,
        letter: &mut Letter,
    ) -> Result<Option<Repaired>, RepairError> {
        let (subject, before) = match letter.begun.take() {
            Some(begun) => begun,
            None => (self.take_up(rows, letter).await?, 0),
        };
        let (member, budget) = (&mut self.member, &mut self.budget);
        let outcome = retry_aggregate(member, rows, self.log, self.feed, &subject, budget).await?;
        let done = before + outcome.done;
        let (waiting, reason) = match outcome.rest {
            Remaining::Left => {
                letter.begun = Some((subject, done));
                return Ok(None);
            }
            Remaining::Stuck { reason, waiting } => (waiting, Some(reason)),
            Remaining::Nothing => (0, None),
        };
        Ok(Some(Repaired {
            id: letter.id.to_string(),
            // One that is left out is the first that is done.
            applied: done.saturating_sub(usize::from(letter.skip)),
            waiting,
            reason,
        }))
    }

    /// Returns the subject of a letter, which is skipped from now on if it is to be.
    async fn take_up(
        &mut self,
        rows: &mut PgConnection,
        letter: &Letter,
    ) -> Result<String, RepairError> {
        let (subject, reason) = find(rows, &letter.id).await?;
        if letter.skip {
            let (feed, known) = (self.feed, &self.known);
            leave_out(rows, &letter.id, feed, known, &subject, &reason).await?;
            self.member.skipped.insert(letter.id.sequence);
        }
        Ok(subject)
    }
}

async fn leave_out(
    rows: &mut PgConnection,
    id: &Id,
    feed: Log,
    known: &Checkpoint,
    subject: &str,
    reason: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO skipped_events (projection, log, epoch, sequence, subject, reason)
             VALUES ($1, $2, $3, $4, $5, $6)",
        id.projection,
        log_name(feed),
        known.epoch,
        bigint(id.sequence),
        subject,
        reason,
    )
    .execute(rows)
    .await?;
    Ok(())
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.projection, self.sequence)
    }
}

impl Id {
    fn parse(given: &str) -> Result<Self, RepairError> {
        let parts = given.split_once(':');
        let parsed = parts.and_then(|(projection, sequence)| {
            Some(Self {
                projection: projection.to_owned(),
                sequence: sequence.parse().ok()?,
            })
        });
        parsed.ok_or_else(|| unknown(given))
    }
}

fn unknown(given: &str) -> RepairError {
    RepairError::Letter(format!(
        "{given} is not a dead letter; `waypost projection dead-letters` lists them"
    ))
}

/// Blocks other changes of a projection's rows until the end of the transaction.
async fn locked(rows: &mut PgConnection, projection: &str) -> Result<Checkpoint, RepairError> {
    sqlx::query_scalar!(
        "SELECT generation FROM projection_checkpoints WHERE name = $1 FOR UPDATE",
        projection,
    )
    .fetch_optional(&mut *rows)
    .await?;
    let all = checkpoint::all(rows).await?;
    let known = all.into_iter().find(|one| one.name == projection);
    Ok(known.ok_or(sqlx::Error::RowNotFound)?)
}

/// Counts one more change of a projection's rows.
async fn changed(rows: &mut PgConnection, projection: &str) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE projection_checkpoints SET generation = generation + 1 WHERE name = $1",
        projection,
    )
    .execute(rows)
    .await?;
    Ok(())
}

/// Returns the subject of an event that could not be applied, and the reason. It has to be the first
/// of its aggregate that waits: the others are applied after it.
async fn find(rows: &mut PgConnection, id: &Id) -> Result<(String, String), RepairError> {
    let found = sqlx::query!(
        r#"SELECT subject, reason,
                  (SELECT min(sequence) FROM dead_letters AS other
                   WHERE other.projection = letter.projection
                     AND other.subject = letter.subject) AS "first!"
           FROM dead_letters AS letter WHERE projection = $1 AND sequence = $2"#,
        id.projection,
        bigint(id.sequence),
    )
    .fetch_optional(rows)
    .await?;
    let letter = found.ok_or_else(|| unknown(&id.to_string()))?;
    if letter.first == bigint(id.sequence) {
        let reason = letter.reason.unwrap_or_else(|| UNTRIED.to_owned());
        return Ok((letter.subject, reason));
    }
    Err(RepairError::Letter(format!(
        "{id} waits behind the dead letter {}:{}: retry or skip that one",
        id.projection, letter.first
    )))
}
