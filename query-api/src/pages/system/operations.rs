//! Operations requested by operators, and their outcomes.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgPool;
use uuid::Uuid;

/// Operations shown on the page.
const LAST: i64 = 20;

#[derive(Serialize)]
pub(super) struct Operation {
    id: Uuid,
    kind: String,
    projection: String,
    /// The number of dead letters that it concerns.
    letters: i32,
    asked_at: DateTime<Utc>,
    begun_at: Option<DateTime<Utc>>,
    ended_at: Option<DateTime<Utc>>,
    is_cancelled: bool,
    doing: Option<String>,
    done: i64,
    total: i64,
    outcome: Option<String>,
    told: Vec<String>,
}

/// Returns the last operations, newest first. Those that have not ended are always included.
pub(super) async fn last(models: &PgPool) -> Result<Vec<Operation>, sqlx::Error> {
    sqlx::query_as!(
        Operation,
        r#"SELECT operation_id AS id, kind, projection, cardinality(letters) AS "letters!",
                  asked_at, begun_at, ended_at, is_cancelled, doing, done, total, outcome, told
           FROM projection_operations
           ORDER BY ended_at IS NOT NULL, asked_at DESC LIMIT $1"#,
        LAST,
    )
    .fetch_all(models)
    .await
}
