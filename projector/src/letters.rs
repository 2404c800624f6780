//! What an operator can do about events that were put aside: try them again, or leave them out.

use event_log::EventLog;
use serde::Serialize;
use sqlx::{Connection as _, PgConnection, PgPool};

use crate::batch::Member;
use crate::checkpoint::{self, Checkpoint, log_name};
use crate::connect::Connector;
use crate::error::RepairError;
use crate::projection::{self, Role, bigint};
use crate::retry::{Outcome, retry_aggregate};
use crate::settings::ProjectorSettings;

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Repaired {
    /// The event that was put aside.
    pub id: String,
    /// Events of its aggregate that are applied now.
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

/// Tries an event again that was put aside, and then those that wait behind it.
///
/// # Errors
/// Where there is no such event, or the log or the database does not answer.
pub async fn retry_letter(
    log: &EventLog,
    pool: &PgPool,
    id: &str,
) -> Result<Repaired, RepairError> {
    Box::pin(repair(log, pool, id, false)).await
}

/// Leaves an event out that was put aside, for good, and applies those that wait behind it.
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
    let id = Id::parse(given)?;
    let found = projection::named(&id.projection, log, Role::Serving);
    let (feed, projection) = found.ok_or_else(|| unknown(given))?;
    let connector = Connector::new(pool, ProjectorSettings::default().takeover);
    let mut session = connector.repairer().await?;
    let mut transaction = session.begin().await?;
    // The active projector waits, and then finds that the rows are not those it knew.
    let known = changed(&mut transaction, &id.projection).await?;
    known.fits(log.end(feed).await?)?;
    let (subject, reason) = letter(&mut transaction, given, &id).await?;
    if skip {
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
        .execute(&mut *transaction)
        .await?;
    }
    let mut member = Member::load(&mut transaction, projection, &known).await?;
    let Outcome { done, stuck } =
        retry_aggregate(&mut member, &mut transaction, log, feed, &subject).await?;
    transaction.commit().await?;
    let (waiting, reason) = match stuck {
        Some((_, reason, waiting)) => (waiting, Some(reason)),
        None => (0, None),
    };
    Ok(Repaired {
        id: given.to_owned(),
        applied: done - usize::from(skip),
        waiting,
        reason,
    })
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

/// Counts one more change of a projection's rows, and keeps others from making any until the end
/// of the transaction.
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

/// The subject of an event that was put aside because it could not be applied, and why.
async fn letter(
    rows: &mut PgConnection,
    given: &str,
    id: &Id,
) -> Result<(String, String), RepairError> {
    let found = sqlx::query!(
        "SELECT subject, reason, behind FROM dead_letters WHERE projection = $1 AND sequence = $2",
        id.projection,
        bigint(id.sequence),
    )
    .fetch_optional(rows)
    .await?;
    let letter = found.ok_or_else(|| unknown(given))?;
    match (letter.reason, letter.behind) {
        (Some(reason), _) => Ok((letter.subject, reason)),
        (None, behind) => Err(RepairError::Letter(format!(
            "{given} waits behind the dead letter {}:{}: retry or skip that one",
            id.projection,
            behind.unwrap_or_default()
        ))),
    }
}
