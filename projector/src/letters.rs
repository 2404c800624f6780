//! What an operator can do about dead letters: retry or skip them.

use std::fmt;

use event_log::EventLog;
use schemas::Log;
use serde::Serialize;
use sqlx::{Connection as _, PgConnection, PgPool};

use crate::batch::Member;
use crate::checkpoint::{self, Checkpoint, log_name};
use crate::connect;
use crate::error::RepairError;
use crate::projection::{self, Role, bigint};
use crate::retry::{Outcome, retry_aggregate};

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

/// Retries or skips dead letters of one projection in one transaction; returns each result.
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
    let found = projection::named(projection, log, Role::Serving);
    let (feed, folding) = found.ok_or_else(|| unknown(projection))?;
    let mut session = connect::repairer(pool).await?;
    let mut transaction = session.begin().await?;
    // The active projector waits, and then finds that the rows are not those it knew.
    let known = changed(&mut transaction, projection).await?;
    known.fits(log, feed).await?;
    let mut member = Member::load(&mut transaction, folding, &known).await?;
    let mut all = Vec::with_capacity(sequences.len());
    for sequence in sequences {
        let id = Id {
            projection: projection.to_owned(),
            sequence: *sequence,
        };
        let (subject, reason) = match letter(&mut transaction, &id).await {
            Ok(found) => found,
            Err(error @ RepairError::Letter(_)) => {
                all.push(Err(error));
                continue;
            }
            Err(error) => return Err(error),
        };
        if skip {
            leave_out(&mut transaction, &id, feed, &known, &subject, &reason).await?;
            member.skipped.insert(*sequence);
        }
        let outcome = retry_aggregate(&mut member, &mut transaction, log, feed, &subject).await?;
        all.push(Ok(Repaired::of(&id, outcome, skip)));
    }
    if all.iter().any(Result::is_ok) {
        transaction.commit().await?;
    }
    Ok(all)
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

impl Repaired {
    fn of(id: &Id, outcome: Outcome, skip: bool) -> Self {
        let Outcome { done, stuck } = outcome;
        let (waiting, reason) = match stuck {
            Some((_, reason, waiting)) => (waiting, Some(reason)),
            None => (0, None),
        };
        Self {
            id: id.to_string(),
            applied: done - usize::from(skip),
            waiting,
            reason,
        }
    }
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

/// Counts one more change of a projection's rows, and blocks other changes until the end of the
/// transaction.
async fn changed(rows: &mut PgConnection, projection: &str) -> Result<Checkpoint, RepairError> {
    sqlx::query!(
        "UPDATE projection_checkpoints SET generation = generation + 1 WHERE name = $1",
        projection,
    )
    .execute(&mut *rows)
    .await?;
    let all = checkpoint::all(rows).await?;
    let known = all.into_iter().find(|one| one.name == projection);
    Ok(known.ok_or(sqlx::Error::RowNotFound)?)
}

/// Returns the subject of an event that could not be applied, and the reason.
async fn letter(rows: &mut PgConnection, id: &Id) -> Result<(String, String), RepairError> {
    let found = sqlx::query!(
        "SELECT subject, reason, behind FROM dead_letters WHERE projection = $1 AND sequence = $2",
        id.projection,
        bigint(id.sequence),
    )
    .fetch_optional(rows)
    .await?;
    let letter = found.ok_or_else(|| unknown(&id.to_string()))?;
    match (letter.reason, letter.behind) {
        (Some(reason), _) => Ok((letter.subject, reason)),
        (None, behind) => Err(RepairError::Letter(format!(
            "{id} waits behind the dead letter {}:{}: retry or skip that one",
            id.projection,
            behind.unwrap_or_default()
        ))),
    }
}
