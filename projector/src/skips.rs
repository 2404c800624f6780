//! Events that projections were asked to skip, for good.

use std::collections::HashSet;

use serde::Serialize;
use sqlx::{PgExecutor, PgPool};

/// An event that a projection skips.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Skipped {
    /// The projection.
    pub projection: String,
    /// The log that contains the event.
    pub log: String,
    /// Its sequence in that log.
    pub sequence: u64,
    /// The aggregate's subject in the log.
    pub subject: String,
    /// Why it could not be applied.
    pub reason: String,
}

/// Returns every skipped event, by projection and then in the order of the log.
///
/// # Errors
/// If the database does not answer.
pub async fn skipped_events(pool: &PgPool) -> Result<Vec<Skipped>, sqlx::Error> {
    let found = sqlx::query!(
        "SELECT projection, log, sequence, subject, reason FROM skipped_events
         ORDER BY projection, epoch, sequence"
    )
    .fetch_all(pool)
    .await?;
    let skipped = found.into_iter().map(|row| Skipped {
        projection: row.projection,
        log: row.log,
        sequence: u64::try_from(row.sequence).unwrap_or_default(),
        subject: row.subject,
        reason: row.reason,
    });
    Ok(skipped.collect())
}

/// The sequences that a projection skips.
pub(crate) async fn of(
    rows: impl PgExecutor<'_>,
    projection: &str,
    epoch: i64,
) -> Result<HashSet<u64>, sqlx::Error> {
    let found = sqlx::query_scalar!(
        "SELECT sequence FROM skipped_events WHERE projection = $1 AND epoch = $2",
        projection,
        epoch,
    )
    .fetch_all(rows)
    .await?;
    let sequences = found.into_iter().map(u64::try_from);
    Ok(sequences.filter_map(Result::ok).collect())
}
