//! Positions and deliveries live in the read models as long as their events do in the log.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use schemas::Log;
use sqlx::PgPool;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::Dependencies;
use crate::projection::{delete_expired_attempts, delete_expired_deliveries};

const EVERY: Duration = Duration::from_mins(10);
/// Positions deleted in one transaction: far fewer than the statement timeout allows.
const POSITIONS: u32 = 10_000;
/// Deliveries deleted in one transaction, which blocks writers of other deliveries.
const DELIVERIES: u32 = 1_000;
/// The same for deliveries of which only some attempts are deleted: each may be a hundred KiB.
const DELIVERIES_KEPT: u32 = 100;

/// Deletes what has expired periodically until `shutdown`. Several projectors may do so at once.
pub(crate) async fn keep_sweeping(deps: Dependencies, shutdown: CancellationToken) {
    let sweeping = async {
        loop {
            if let Some(oldest) = oldest(&deps, Log::Locations) {
                log_result("positions", sweep_positions(&deps.pool, oldest).await);
            }
            if let Some(oldest) = oldest(&deps, Log::Deliveries) {
                log_result("deliveries", sweep_deliveries(&deps.pool, oldest).await);
                log_result("attempts", sweep_attempts(&deps.pool, oldest).await);
            }
            sleep(EVERY).await;
        }
    };
    shutdown.run_until_cancelled(sweeping).await;
}

/// The time since which a log keeps its events, unless it keeps them for ever.
fn oldest(deps: &Dependencies, log: Log) -> Option<DateTime<Utc>> {
    let age = TimeDelta::from_std(deps.log.age_limit(log)?).ok()?;
    deps.clock.now().checked_sub_signed(age)
}

fn log_result(what: &'static str, swept: Result<u64, sqlx::Error>) {
    match swept {
        Ok(0) => {}
        Ok(rows) => tracing::info!(rows, what, "Deleted what has expired"),
        Err(error) => tracing::warn!(%error, what, "Cannot delete what has expired"),
    }
}

/// Deletes the positions received before a time; returns their number.
async fn sweep_positions(pool: &PgPool, oldest: DateTime<Utc>) -> Result<u64, sqlx::Error> {
    let mut all = 0;
    loop {
        let swept = sqlx::query!(
            "DELETE FROM positions WHERE ctid = ANY(ARRAY(
                 SELECT ctid FROM positions WHERE received_at < $1 LIMIT $2))",
            oldest,
            i64::from(POSITIONS),
        )
        .execute(pool)
        .await?;
        all += swept.rows_affected();
        if swept.rows_affected() < u64::from(POSITIONS) {
            return Ok(all);
        }
    }
}

/// Deletes the deliveries whose last event was written before a time; returns their number.
async fn sweep_deliveries(pool: &PgPool, oldest: DateTime<Utc>) -> Result<u64, sqlx::Error> {
    let mut all = 0;
    loop {
        let swept = delete_expired_deliveries(pool, oldest, DELIVERIES).await?;
        all += swept;
        if swept < u64::from(DELIVERIES) {
            return Ok(all);
        }
    }
}

/// Deletes the attempts made before a time from deliveries that were changed since; returns the
/// number of these deliveries.
async fn sweep_attempts(pool: &PgPool, oldest: DateTime<Utc>) -> Result<u64, sqlx::Error> {
    let mut all = 0;
    loop {
        let swept = delete_expired_attempts(pool, oldest, DELIVERIES_KEPT).await?;
        all += swept;
        if swept < u64::from(DELIVERIES_KEPT) {
            return Ok(all);
        }
    }
}
