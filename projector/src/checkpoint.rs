//! How far each projection has read its log.

use event_log::{EventLog, Mark, MarkError};
use schemas::{EventId, Log};
use service::progress::{CHANNEL, Moved};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::error::FeedError;
use crate::projection::bigint;

/// The position of a projection.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoint {
    pub(crate) name: String,
    pub(crate) log: String,
    pub(crate) epoch: i64,
    pub(crate) sequence: u64,
    /// The event at that sequence, if it is known.
    pub(crate) event_id: Option<Uuid>,
    /// How often processes other than the active projector have changed the rows.
    pub(crate) generation: i64,
}

impl Checkpoint {
    /// Whether the log is still the one that the projection was built from.
    pub(crate) async fn fits(&self, log: &EventLog, feed: Log) -> Result<(), FeedError> {
        let now = log.position(feed, 0).epoch();
        if self.epoch != i64::from(now) {
            return Err(FeedError::OtherEpoch {
                name: self.name.clone(),
                built: self.epoch,
                now,
            });
        }
        let mark = Mark {
            sequence: self.sequence,
            event: self.event_id.map(EventId),
        };
        match log.check(feed, mark).await {
            Ok(()) => Ok(()),
            Err(MarkError::Read(error)) => Err(error.into()),
            Err(MarkError::WentBack(went_back)) => Err(FeedError::WentBack {
                name: self.name.clone(),
                went_back,
            }),
        }
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

/// Gives projections that have no position yet one before the first event.
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
    let found = sqlx::query!(
        "SELECT name, log, epoch, sequence, event_id, generation FROM projection_checkpoints
         ORDER BY name"
    )
    .fetch_all(rows)
    .await?;
    let checkpoints = found.into_iter().map(|row| Checkpoint {
        name: row.name,
        log: row.log,
        epoch: row.epoch,
        sequence: u64::try_from(row.sequence).unwrap_or_default(),
        event_id: row.event_id,
        generation: row.generation,
    });
    Ok(checkpoints.collect())
}

/// A step of several projections of one log from one position to a later one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step<'a> {
    pub(crate) log: Log,
    pub(crate) epoch: u32,
    pub(crate) names: &'a [&'a str],
    /// The generation of each.
    pub(crate) generations: &'a [i64],
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// The event at `to`, if it is known.
    pub(crate) event: Option<EventId>,
    /// Whether readers wait for these rows.
    pub(crate) notifies_readers: bool,
}

impl Step<'_> {
    /// Moves the positions and notifies those who wait for them, once this is committed. Returns
    /// `false` if a position or generation is not the expected one: then another process has been
    /// at work, and the transaction must be rolled back.
    ///
    /// This applies each batch once, even if another process believes it is the active projector.
    pub(crate) async fn take(&self, rows: &mut PgConnection) -> Result<bool, sqlx::Error> {
        let moved = sqlx::query!(
            r#"WITH moved AS (
                   UPDATE projection_checkpoints AS known
                   SET sequence = $5, event_id = $10, updated_at = now()
                   FROM UNNEST($1::text[], $8::bigint[]) AS expected (name, generation)
                   WHERE known.name = expected.name AND known.generation = expected.generation
                     AND log = $2 AND epoch = $3 AND sequence = $4
                   RETURNING known.name
               )
               SELECT count(*) AS "count!",
                      CASE WHEN $9 THEN pg_notify($6, $7)::text END AS notified
               FROM moved"#,
            self.names as _,
            log_name(self.log),
            i64::from(self.epoch),
            bigint(self.from),
            bigint(self.to),
            CHANNEL,
            serde_json::to_string(&self.notification()).unwrap_or_default(),
            self.generations,
            self.notifies_readers,
            self.event.map(|event| event.0),
        )
        .fetch_one(rows)
        .await?;
        Ok(usize::try_from(moved.count) == Ok(self.names.len()))
    }

    fn notification(&self) -> Moved<'_> {
        Moved {
            epoch: self.epoch,
            sequence: self.to,
            projections: self.names.to_vec(),
        }
    }
}

/// Whether the projections still have these generations.
pub(crate) async fn are_current(
    rows: impl PgExecutor<'_>,
    names: &[&str],
    generations: &[i64],
) -> Result<bool, sqlx::Error> {
    let current = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM projection_checkpoints
           JOIN UNNEST($1::text[], $2::bigint[]) AS known (name, generation)
                USING (name, generation)"#,
        names as _,
        generations,
    )
    .fetch_one(rows)
    .await?;
    Ok(usize::try_from(current) == Ok(names.len()))
}
