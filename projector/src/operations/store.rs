//! Operations as stored in the database.

use domain::operation::OperationKind;
use sqlx::{Connection as _, PgConnection, PgPool};
use uuid::Uuid;

use super::Queue;
use crate::connect::Connector;
use crate::copy::Progress;
use crate::projection::bigint;

/// Marks the locks of processes that perform operations among the database's advisory locks.
const LOCKS: i32 = 0x7761_7972;

/// A requested operation, and its progress.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) id: Uuid,
    pub(super) kind: OperationKind,
    pub(super) projection: String,
    pub(super) letters: Vec<u64>,
    pub(super) is_cancelled: bool,
    pub(super) done: u64,
    pub(super) total: u64,
}

/// How an operation has ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    Succeeded,
    Differs,
    Failed,
    Cancelled,
}

/// The result of an operation, in words without personal data.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) outcome: Outcome,
    pub(super) told: Vec<String>,
}

impl Outcome {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "SUCCEEDED",
            Self::Differs => "DIFFERS",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
        }
    }

    pub(super) fn told(self, told: Vec<String>) -> Done {
        Done {
            outcome: self,
            told,
        }
    }
}

impl Done {
    pub(super) fn cancelled() -> Self {
        Outcome::Cancelled.told(Vec::new())
    }
}

/// The session of the performing process; its end frees the lock that keeps others out.
pub(super) struct Session(PgConnection);

/// Whether an operation of these kinds is requested, whichever process performs it.
pub(super) async fn is_any_open(pool: &PgPool, kinds: &[String]) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM projection_operations
                          WHERE ended_at IS NULL AND kind = ANY($1)) AS "any!""#,
        kinds,
    )
    .fetch_one(pool)
    .await
}

impl Session {
    /// Returns `None` if another process performs the operations of this queue.
    pub(super) async fn open(
        connector: &Connector,
        queue: Queue,
    ) -> Result<Option<Self>, sqlx::Error> {
        let mut session = connector.performer().await?;
        let locked = sqlx::query_scalar!(
            r#"SELECT pg_try_advisory_lock($1, $2) AS "locked!""#,
            LOCKS,
            queue as i32
        )
        .fetch_one(&mut session)
        .await?;
        Ok(locked.then_some(Self(session)))
    }

    /// Begins the operation that was requested first.
    pub(super) async fn begin(
        &mut self,
        kinds: &[String],
    ) -> Result<Option<Operation>, sqlx::Error> {
        let found = sqlx::query!(
            "UPDATE projection_operations SET begun_at = coalesce(begun_at, now())
             WHERE operation_id = (SELECT operation_id FROM projection_operations
                                   WHERE ended_at IS NULL AND kind = ANY($1)
                                   ORDER BY asked_at, operation_id LIMIT 1)
             RETURNING operation_id, kind, projection, letters, is_cancelled, done, total",
            kinds,
        )
        .fetch_optional(&mut self.0)
        .await?;
        let unsigned = |value| u64::try_from(value).unwrap_or_default();
        Ok(found.and_then(|row| {
            Some(Operation {
                id: row.operation_id,
                kind: OperationKind::parse(&row.kind)?,
                projection: row.projection,
                letters: row.letters.into_iter().map(unsigned).collect(),
                is_cancelled: row.is_cancelled,
                done: unsigned(row.done),
                total: unsigned(row.total),
            })
        }))
    }

    /// Saves the progress; returns whether the operation is to be cancelled.
    pub(super) async fn save_progress(
        &mut self,
        operation: &Operation,
        progress: Progress,
    ) -> Result<bool, sqlx::Error> {
        sqlx::query_scalar!(
            "UPDATE projection_operations SET doing = $2, done = $3, total = $4
             WHERE operation_id = $1 RETURNING is_cancelled",
            operation.id,
            progress.doing,
            bigint(progress.done),
            bigint(progress.of),
        )
        .fetch_one(&mut self.0)
        .await
    }

    /// Saves the result, and deletes operations that ended long ago.
    pub(super) async fn end(
        &mut self,
        operation: &Operation,
        done: &Done,
    ) -> Result<(), sqlx::Error> {
        sqlx::query!(
            "UPDATE projection_operations
             SET ended_at = now(), doing = NULL, outcome = $2, told = $3
             WHERE operation_id = $1",
            operation.id,
            done.outcome.as_str(),
            &done.told,
        )
        .execute(&mut self.0)
        .await?;
        sqlx::query!(
            "DELETE FROM projection_operations WHERE ended_at < now() - INTERVAL '30 days'"
        )
        .execute(&mut self.0)
        .await?;
        Ok(())
    }

    /// Releases the lock at once.
    pub(super) async fn close(self) -> Result<(), sqlx::Error> {
        self.0.close().await
    }
}
