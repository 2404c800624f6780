//! Empties the read models, so that they are rebuilt from the first event.

use sqlx::{AssertSqlSafe, PgPool};

/// Tables that are no read models: counts of limits and tries, pending codes and their receipts,
/// requests of operators, and the migrations that have run.
const KEPT: [&str; 9] = [
    "limit_windows",
    "limit_seconds",
    "limit_uses",
    "limit_quarters",
    "one_time_codes",
    "code_receipts",
    "throttles",
    "projection_operations",
    "_sqlx_migrations",
];

/// Empties every read model, checkpoints included. No projector may be running.
pub async fn empty(pool: &PgPool) -> Result<(), sqlx::Error> {
    let tables: Option<String> = sqlx::query_scalar(
        "SELECT string_agg(format('%I.%I', schemaname, tablename), ', ') FROM pg_tables
         WHERE schemaname = current_schema() AND tablename <> ALL($1)",
    )
    .bind(KEPT.map(str::to_owned).to_vec())
    .fetch_one(pool)
    .await?;
    if let Some(tables) = tables {
        // Names come from the database itself, quoted by it.
        let truncate = format!("TRUNCATE {tables}");
        sqlx::query(AssertSqlSafe(truncate)).execute(pool).await?;
    }
    Ok(())
}
