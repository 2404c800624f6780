//! Retries dead letters when a projector becomes active: a newer program may be able to read or
//! apply what an older one could not.

use event_log::{EventLog, ReadError};
use schemas::{Log, Recorded};
use sqlx::{Connection as _, PgConnection};

use crate::batch::Member;
use crate::error::{FeedError, WriteError};
use crate::projection::{ApplyError, bigint};

/// The result of retrying an aggregate's events.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The number of events that are done.
    pub(crate) done: usize,
    /// The event that still cannot be applied, why, and how many wait with it, itself included.
    pub(crate) stuck: Option<(u64, String, usize)>,
}

/// Retries all that a projection has put aside, each aggregate's events in order.
pub(crate) async fn retry(
    member: &mut Member,
    session: &mut PgConnection,
    log: &EventLog,
    feed: Log,
) -> Result<(), FeedError> {
    for subject in member.parked.subjects() {
        let outcome = retry_aggregate(member, session, log, feed, &subject).await?;
        if outcome.done > 0 {
            let (projection, events) = (member.projection.name(), outcome.done);
            tracing::info!(projection, events, "Dead letters were applied");
        }
    }
    Ok(())
}

/// Retries the events of one aggregate.
pub(crate) async fn retry_aggregate(
    member: &mut Member,
    session: &mut PgConnection,
    log: &EventLog,
    feed: Log,
    subject: &str,
) -> Result<Outcome, FeedError> {
    let mut transaction = session.begin().await?;
    let name = member.projection.name();
    let waiting = waiting(&mut transaction, name, subject).await?;
    let mut done = Vec::new();
    let mut stuck = None;
    for sequence in &waiting {
        match apply_one(member, &mut transaction, log, feed, *sequence).await? {
            None => done.push(bigint(*sequence)),
            Some(reason) => {
                stuck = Some((*sequence, reason, waiting.len() - done.len()));
                break;
            }
        }
    }
    forget(&mut transaction, name, &done).await?;
    if let Some((sequence, reason, _)) = &stuck {
        stick(&mut transaction, name, subject, *sequence, reason).await?;
    }
    transaction.commit().await?;
    match &stuck {
        Some((sequence, ..)) => member.parked.park(subject, *sequence),
        None => member.parked.release(subject),
    }
    let done = done.len();
    Ok(Outcome { done, stuck })
}

/// Applies one event, unless it is to be skipped; returns the reason if it still cannot be applied.
async fn apply_one(
    member: &mut Member,
    rows: &mut PgConnection,
    log: &EventLog,
    feed: Log,
    sequence: u64,
) -> Result<Option<String>, FeedError> {
    if member.skipped.contains(&sequence) {
        return Ok(None);
    }
    let event: Recorded = match log.get(feed, sequence).await {
        Ok(Some(event)) => event,
        // It has been erased: there is nothing left to apply.
        Ok(None) => return Ok(None),
        Err(ReadError::Undecodable { reason, .. }) => return Ok(Some(reason)),
        Err(error) => return Err(error.into()),
    };
    let mut savepoint = rows.begin().await?;
    match member.projection.apply(&mut savepoint, &[&event]).await {
        Ok(()) => {
            savepoint.commit().await?;
            Ok(None)
        }
        Err(error) if error.blames_an_event() => {
            savepoint.rollback().await?;
            Ok(Some(error.to_string()))
        }
        Err(ApplyError::Database(error)) => Err(error.into()),
        Err(ApplyError::Vault(error)) => Err(WriteError::Vault(error).into()),
        Err(ApplyError::Refused(reason)) => Ok(Some(reason)),
    }
}

/// Returns the events of an aggregate that were put aside, locked against other projectors.
async fn waiting(
    rows: &mut PgConnection,
    projection: &str,
    subject: &str,
) -> Result<Vec<u64>, sqlx::Error> {
    let found = sqlx::query_scalar!(
        "SELECT sequence FROM dead_letters WHERE projection = $1 AND subject = $2
         ORDER BY sequence FOR UPDATE",
        projection,
        subject,
    )
    .fetch_all(rows)
    .await?;
    let sequences = found
        .into_iter()
        .map(|one| u64::try_from(one).unwrap_or_default());
    Ok(sequences.collect())
}

async fn forget(
    rows: &mut PgConnection,
    projection: &str,
    sequences: &[i64],
) -> Result<(), sqlx::Error> {
    if sequences.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "DELETE FROM dead_letters WHERE projection = $1 AND sequence = ANY($2)",
        projection,
        sequences,
    )
    .execute(rows)
    .await?;
    Ok(())
}

/// Makes the event at `sequence` the one that the others wait behind.
async fn stick(
    rows: &mut PgConnection,
    projection: &str,
    subject: &str,
    sequence: u64,
    reason: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE dead_letters SET
             reason = CASE WHEN sequence = $3 THEN $4 END,
             behind = CASE WHEN sequence <> $3 THEN $3 END,
             attempts = CASE WHEN sequence = $3 AND reason IS NOT NULL THEN attempts + 1
                             ELSE 1 END
         WHERE projection = $1 AND subject = $2",
        projection,
        subject,
        bigint(sequence),
        reason.replace('\0', "\u{fffd}"),
    )
    .execute(rows)
    .await?;
    Ok(())
}
