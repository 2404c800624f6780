//! Copies that no process is filling: left by one that was stopped, to be continued. They hold what
//! they have read, and miss what was forgotten or erased since.

use std::time::Duration;

use sqlx::{PgConnection, PgPool};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::layout::run;
use super::{LOCKS, REBUILD, VERIFY, try_lock};
use crate::connect;
use crate::error::RepairError;

/// How long an unfinished rebuild waits to be continued.
const KEPT: Duration = Duration::from_hours(24);
const SWEEP_EVERY: Duration = Duration::from_mins(10);
const TRY_EVERY: Duration = Duration::from_millis(100);
/// How long a caller that needs copies to be gone waits for those that are being filled.
const TIMEOUT: Duration = Duration::from_mins(1);
/// How long the server may take to notice that a session is gone; it checks every second.
const LEFT: Duration = Duration::from_secs(10);

/// While this is held, no process fills a copy of the projections, and none exists.
#[derive(Debug)]
pub struct CopiesAway {
    _session: PgConnection,
}

/// Drops the copies of the projections, and keeps new ones from being begun. What is erased from
/// the log while one is filled would stay in it for ever.
///
/// # Errors
/// If the database does not answer, or a rebuild or a check takes too long to wait for.
pub async fn keep_copies_away(
    pool: &PgPool,
    projections: &[&str],
) -> Result<CopiesAway, RepairError> {
    let mut session = connect::repairer(pool).await?;
    let end = Instant::now() + TIMEOUT;
    for schema in schemas(projections) {
        while !try_lock(&mut session, &schema).await? {
            if Instant::now() > end {
                return Err(RepairError::UnderWay(schema));
            }
            sleep(TRY_EVERY).await;
        }
        run(
            &mut session,
            format!("DROP SCHEMA IF EXISTS {schema} CASCADE"),
        )
        .await?;
    }
    Ok(CopiesAway { _session: session })
}

/// Drops the copies of the projections that no process is filling.
///
/// # Errors
/// If the database does not answer.
pub(crate) async fn drop_idle_copies(
    pool: &PgPool,
    projections: &[&str],
) -> Result<(), sqlx::Error> {
    for schema in schemas(projections) {
        drop_idle(pool, &schema, Duration::ZERO).await?;
    }
    Ok(())
}

/// Drops a copy that its only session has just left, as soon as the server has noticed. A process
/// that restarts it meanwhile keeps it.
pub(super) async fn drop_left(pool: &PgPool, schema: &str) -> Result<(), RepairError> {
    let end = Instant::now() + LEFT;
    while !drop_idle(pool, schema, Duration::ZERO).await? && Instant::now() < end {
        sleep(TRY_EVERY).await;
    }
    Ok(())
}

/// Periodically drops copies that have not been continued for long, until `shutdown`.
pub(crate) async fn keep_sweeping(
    pool: PgPool,
    projections: Vec<&'static str>,
    shutdown: CancellationToken,
) {
    let sweeping = async {
        loop {
            for schema in schemas(&projections) {
                let kept = if schema.starts_with(VERIFY) {
                    Duration::ZERO
                } else {
                    KEPT
                };
                if let Err(error) = drop_idle(&pool, &schema, kept).await {
                    tracing::debug!(%error, schema, "Cannot inspect a copy that may be abandoned");
                }
            }
            sleep(SWEEP_EVERY).await;
        }
    };
    shutdown.run_until_cancelled(sweeping).await;
}

fn schemas(projections: &[&str]) -> Vec<String> {
    let schemas = projections
        .iter()
        .flat_map(|name| [REBUILD, VERIFY].map(|prefix| format!("{prefix}{name}")));
    schemas.collect()
}

/// Drops a copy unless a process fills it, or did so no longer than `kept` ago. Returns whether
/// none exists now.
async fn drop_idle(pool: &PgPool, schema: &str, kept: Duration) -> Result<bool, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let is_idle = sqlx::query_scalar!(
        r#"SELECT pg_try_advisory_xact_lock($1, hashtext($2)) AS "idle!"
           FROM pg_namespace WHERE nspname = $2"#,
        LOCKS,
        schema,
    )
    .fetch_optional(&mut *transaction)
    .await?;
    let Some(is_idle) = is_idle else {
        return Ok(true);
    };
    let is_dropped = is_idle && is_old(&mut transaction, schema, kept).await?;
    if is_dropped {
        run(
            &mut transaction,
            format!("DROP SCHEMA IF EXISTS {schema} CASCADE"),
        )
        .await?;
        tracing::info!(schema, "Dropping an abandoned copy");
    }
    transaction.commit().await?;
    Ok(is_dropped)
}

async fn is_old(
    rows: &mut PgConnection,
    schema: &str,
    kept: Duration,
) -> Result<bool, sqlx::Error> {
    if kept.is_zero() {
        return Ok(true);
    }
    let query = format!(
        "SELECT coalesce(bool_and(updated_at < now() - make_interval(secs => $1)), true)
         FROM {schema}.projection_checkpoints"
    );
    sqlx::query_scalar(sqlx::AssertSqlSafe(query))
        .bind(kept.as_secs_f64())
        .fetch_one(rows)
        .await
}
