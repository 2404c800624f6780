//! How far each projection has read its log.

use event_log::Position;
use schemas::Log;
use sqlx::{PgConnection, PgExecutor};

use crate::error::FeedError;
use crate::projection::bigint;

/// The channel on which readers hear that a projection has moved on.
pub const CHANNEL: &str = "projection";

/// How far a projection is.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoint {
    pub(crate) name: String,
    pub(crate) log: String,
    pub(crate) epoch: i64,
    pub(crate) sequence: u64,
}

impl Checkpoint {
    /// Whether the log that ends at `end` is the one that the projection was built from.
    pub(crate) fn fits(&self, end: Position) -> Result<(), FeedError> {
        if self.epoch != i64::from(end.epoch()) {
            return Err(FeedError::OtherEpoch {
                name: self.name.clone(),
                built: self.epoch,
                now: end.epoch(),
            });
        }
        if self.sequence > end.sequence() {
            return Err(FeedError::BehindTheEnd {
                name: self.name.clone(),
                position: self.sequence,
                end: end.sequence(),
            });
        }
        Ok(())
    }
}

/// A log's name in the tables of the read models.
pub const fn log_name(log: Log) -> &'static str {
    match log {
        Log::Events => "events",
        Log::Locations => "locations",
        Log::Deliveries => "deliveries",
    }
}

/// Gives projections that have none yet a position before the first event.
pub(crate) async fn ensure(
    rows: &mut PgConnection,
    log: Log,
    epoch: u32,
    names: &[&str],
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO projection_checkpoints (name, log, epoch, sequence)
         SELECT name, $2, $3, 0 FROM UNNEST($1::text[]) AS new (name)
         ON CONFLICT (name) DO NOTHING",
        names as _,
        log_name(log),
        i64::from(epoch),
    )
    .execute(rows)
    .await?;
    Ok(())
}

/// Every projection's position.
pub(crate) async fn all(rows: impl PgExecutor<'_>) -> Result<Vec<Checkpoint>, sqlx::Error> {
    let found =
        sqlx::query!("SELECT name, log, epoch, sequence FROM projection_checkpoints ORDER BY name")
            .fetch_all(rows)
            .await?;
    let checkpoints = found.into_iter().map(|row| Checkpoint {
        name: row.name,
        log: row.log,
        epoch: row.epoch,
        sequence: u64::try_from(row.sequence).unwrap_or_default(),
    });
    Ok(checkpoints.collect())
}

/// A step of several projections of one log from one position to a later one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step<'a> {
    pub(crate) log: Log,
    pub(crate) epoch: u32,
    pub(crate) names: &'a [&'a str],
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Step<'_> {
    /// Moves the positions and tells those who wait for them, once this is committed. Says
    /// `false` where one is not where it was expected: then another projector has been at work,
    /// and the transaction must be undone.
    ///
    /// This is what makes twice into once, whoever else believes to be the active projector.
    pub(crate) async fn take(&self, rows: &mut PgConnection) -> Result<bool, sqlx::Error> {
        let moved = sqlx::query!(
            r#"WITH moved AS (
                   UPDATE projection_checkpoints SET sequence = $5, updated_at = now()
                   WHERE name = ANY($1::text[]) AND log = $2 AND epoch = $3 AND sequence = $4
                   RETURNING name
               )
               SELECT count(*) AS "count!", pg_notify($6, $7)::text AS notified FROM moved"#,
            self.names as _,
            log_name(self.log),
            i64::from(self.epoch),
            bigint(self.from),
            bigint(self.to),
            CHANNEL,
            format!("{}:{}", log_name(self.log), self.to),
        )
        .fetch_one(rows)
        .await?;
        Ok(usize::try_from(moved.count) == Ok(self.names.len()))
    }
}
