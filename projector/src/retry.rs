//! Retries dead letters when a projector becomes active: a newer program may be able to read or
//! apply what an older one could not.

use std::time::Duration;

use event_log::{EventLog, ReadError};
use schemas::{Log, Recorded};
use sqlx::{Connection as _, PgConnection};
use tokio::time::Instant;

use crate::batch::Member;
use crate::error::{FeedError, WriteError};
use crate::projection::{ApplyError, bigint};

/// Why an event is still there that the next transaction of a repair begins with; it is read only if
/// the repair ends before.
pub(crate) const UNTRIED: &str =
    "it waited behind an event that is done now, and has not been tried since";

/// What one transaction may still do.
#[derive(Debug)]
pub(crate) struct Budget {
    events: usize,
    until: Option<Instant>,
}

impl Budget {
    /// Everything that waits.
    pub(crate) const ALL: Self = Self {
        events: usize::MAX,
        until: None,
    };

    /// So many events, begun within this time.
    pub(crate) fn of(events: usize, time: Duration) -> Self {
        Self {
            events,
            until: Some(Instant::now() + time),
        }
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.events == 0 || self.until.is_some_and(|until| until <= Instant::now())
    }
}

/// The result of retrying an aggregate's events.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The number of events that are done.
    pub(crate) done: usize,
    pub(crate) rest: Remaining,
}

/// The events of an aggregate that are not done.
#[derive(Debug)]
pub(crate) enum Remaining {
    Nothing,
    /// They are for another transaction.
    Left,
    /// The first of them still cannot be applied for this reason.
    Stuck {
        reason: String,
        /// How many they are, itself included.
        waiting: usize,
    },
}

/// Retries all that a projection has put aside, each aggregate's events in order, and the aggregates
/// in the order of the first events that wait.
pub(crate) async fn retry(
    member: &mut Member,
    session: &mut PgConnection,
    log: &EventLog,
    feed: Log,
) -> Result<(), FeedError> {
    for subject in member.parked.subjects() {
        let mut all = Budget::ALL;
        let outcome = retry_aggregate(member, session, log, feed, &subject, &mut all).await?;
        if outcome.done > 0 {
            let (projection, events) = (member.projection.name(), outcome.done);
            tracing::info!(projection, events, "Dead letters were applied");
        }
    }
    Ok(())
}

/// Retries the events of one aggregate, at least one and no more than the budget allows.
pub(crate) async fn retry_aggregate(
    member: &mut Member,
    session: &mut PgConnection,
    log: &EventLog,
    feed: Log,
    subject: &str,
    budget: &mut Budget,
) -> Result<Outcome, FeedError> {
    let mut transaction = session.begin().await?;
    let name = member.projection.name();
    let most = budget.events.max(1);
    // One more shows whether any is left.
    let waiting = waiting(&mut transaction, name, subject, most.saturating_add(1)).await?;
    let (mut done, mut stuck) = (Vec::new(), None);
    for sequence in waiting.iter().take(most) {
        if !done.is_empty() && budget.is_spent() {
            break;
        }
        budget.events = budget.events.saturating_sub(1);
        stuck = apply_one(member, &mut transaction, log, feed, *sequence).await?;
        if stuck.is_some() {
            break;
        }
        done.push(bigint(*sequence));
    }
    forget(&mut transaction, name, &done).await?;
    let next = waiting.get(done.len()).copied();
    let rest = match (next, stuck) {
        (None, _) => Remaining::Nothing,
        (Some(next), Some(reason)) => {
            let waiting = stick(&mut transaction, name, subject, next, &reason).await?;
            Remaining::Stuck { reason, waiting }
        }
        (Some(next), None) => {
            lead(&mut transaction, name, next).await?;
            Remaining::Left
        }
    };
    transaction.commit().await?;
    match next {
        Some(next) => member.parked.park(subject, next),
        None => member.parked.release(subject),
    }
    let done = done.len();
    Ok(Outcome { done, rest })
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

/// Returns the first events of an aggregate that were put aside, locked against other projectors.
async fn waiting(
    rows: &mut PgConnection,
    projection: &str,
    subject: &str,
    most: usize,
) -> Result<Vec<u64>, sqlx::Error> {
    let found = sqlx::query_scalar!(
        "SELECT sequence FROM dead_letters WHERE projection = $1 AND subject = $2
         ORDER BY sequence LIMIT $3 FOR UPDATE",
        projection,
        subject,
        i64::try_from(most).unwrap_or(i64::MAX),
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

/// Makes the event at `sequence` the first that waits. The others still name one that is done, until
/// another transaction goes on with them: changing all of them in each would cost more than applying
/// them.
async fn lead(rows: &mut PgConnection, projection: &str, sequence: u64) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE dead_letters SET reason = coalesce(reason, $3), behind = NULL,
             attempts = CASE WHEN reason IS NULL THEN 0 ELSE attempts END
         WHERE projection = $1 AND sequence = $2",
        projection,
        bigint(sequence),
        UNTRIED,
    )
    .execute(rows)
    .await?;
    Ok(())
}

/// Makes the event at `sequence` the one that the others wait behind; returns how many wait, itself
/// included.
async fn stick(
    rows: &mut PgConnection,
    projection: &str,
    subject: &str,
    sequence: u64,
    reason: &str,
) -> Result<usize, sqlx::Error> {
    let waiting = sqlx::query!(
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
    Ok(usize::try_from(waiting.rows_affected()).unwrap_or(usize::MAX))
}
