//! Positions live in the read models as long as their events do in the log.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use schemas::Log;
use sqlx::PgPool;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::Dependencies;

const EVERY: Duration = Duration::from_mins(10);

/// Deletes positions that are too old, every now and then until `shutdown`. Several projectors may
/// do so at once.
pub(crate) async fn keep_sweeping(deps: Dependencies, shutdown: CancellationToken) {
    let age = deps.log.age_limit(Log::Locations);
    let Some(age) = age.and_then(|age| TimeDelta::from_std(age).ok()) else {
        return;
    };
    let sweeping = async {
        while let Some(oldest) = Utc::now().checked_sub_signed(age) {
            match sweep(&deps.pool, oldest).await {
                Ok(0) => {}
                Ok(rows) => tracing::info!(rows, "Positions that were too old are deleted"),
                Err(error) => tracing::warn!(%error, "Old positions cannot be deleted for now"),
            }
            sleep(EVERY).await;
        }
    };
    shutdown.run_until_cancelled(sweeping).await;
}

/// Deletes the positions that were taken up before a time; says how many.
async fn sweep(pool: &PgPool, oldest: DateTime<Utc>) -> Result<u64, sqlx::Error> {
    let swept = sqlx::query!("DELETE FROM positions WHERE received_at < $1", oldest)
        .execute(pool)
        .await?;
    Ok(swept.rows_affected())
}
