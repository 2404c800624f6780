//! Deliveries live in the read models as long as their events do in the log.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};

use super::KIND;
use crate::projection::totals::Totals;

/// The advisory lock that those who fold deliveries share, and whoever deletes old ones takes: a
/// row counts once, whichever of them comes to it.
const EXPIRING: i64 = 0x7761_7970_6f73_7402;

/// Keeps deliveries from being deleted to the transaction's end.
pub(super) async fn keep(rows: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query!("SELECT pg_advisory_xact_lock_shared($1)", EXPIRING)
        .execute(rows)
        .await?;
    Ok(())
}

/// Deletes at most `limit` deliveries whose last event is older than a time; says how many.
pub(crate) async fn delete_expired(
    pool: &PgPool,
    oldest: DateTime<Utc>,
    limit: u32,
) -> Result<u64, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    sqlx::query!("SELECT pg_advisory_xact_lock($1)", EXPIRING)
        .execute(&mut *transaction)
        .await?;
    let gone = sqlx::query!(
        r#"WITH old AS (
               SELECT org_id, delivery_id FROM deliveries
               WHERE changed_at < $1 ORDER BY changed_at LIMIT $2
           ), gone AS (
               DELETE FROM deliveries USING old
               WHERE deliveries.org_id = old.org_id
                 AND deliveries.delivery_id = old.delivery_id
               RETURNING deliveries.org_id, webhook_id, status
           )
           SELECT org_id, webhook_id, status, count(*) AS "count!"
           FROM gone GROUP BY org_id, webhook_id, status"#,
        oldest,
        i64::from(limit),
    )
    .fetch_all(&mut *transaction)
    .await?;
    let (mut totals, mut deleted) = (Totals::default(), 0);
    for row in gone {
        totals.add_within(&row.org_id, KIND, &row.webhook_id, &row.status, -row.count);
        deleted += row.count.unsigned_abs();
    }
    totals.write(&mut transaction).await?;
    transaction.commit().await?;
    Ok(deleted)
}
