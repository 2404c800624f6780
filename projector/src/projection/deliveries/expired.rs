//! Deliveries live in the read models as long as their events do in the log.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};

use super::{Counted, Counts};

/// The advisory lock shared by the writers of the serving deliveries, and held alone to delete old
/// ones: a row counts once, whichever of them reaches it.
const EXPIRING: i64 = 0x7761_7970_6f73_7402;

/// Keeps deliveries from being deleted until the end of the transaction.
pub(super) async fn keep(rows: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query!("SELECT pg_advisory_xact_lock_shared($1)", EXPIRING)
        .execute(rows)
        .await?;
    Ok(())
}

/// Deletes at most `limit` deliveries whose last event is older than a time; returns their number.
pub(crate) async fn delete_expired(
    pool: &PgPool,
    oldest: DateTime<Utc>,
    limit: u32,
) -> Result<u64, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    sqlx::query!("SELECT pg_advisory_xact_lock($1)", EXPIRING)
        .execute(&mut *transaction)
        .await?;
    let gone = sqlx::query_as!(
        Counted,
        r#"WITH old AS (
               SELECT org_id, delivery_id FROM deliveries
               WHERE changed_at < $1 ORDER BY changed_at LIMIT $2
           )
           DELETE FROM deliveries USING old
           WHERE deliveries.org_id = old.org_id
             AND deliveries.delivery_id = old.delivery_id
           RETURNING deliveries.org_id, webhook_id, deliveries.delivery_id, event_type, created_at,
                     status, -1::bigint AS "change!""#,
        oldest,
        i64::from(limit),
    )
    .fetch_all(&mut *transaction)
    .await?;
    Counts::of(&gone).write(&mut transaction).await?;
    transaction.commit().await?;
    Ok(u64::try_from(gone.len()).unwrap_or(u64::MAX))
}

/// Deletes the attempts that began before a time from at most `limit` deliveries that went on
/// afterwards; returns the number of these deliveries. Those that began and ended within an hour
/// are left to [`delete_expired`].
pub(crate) async fn delete_expired_attempts(
    pool: &PgPool,
    oldest: DateTime<Utc>,
    limit: u32,
) -> Result<u64, sqlx::Error> {
    // Attempts' times begin like this: one within the same second is longer, and so comes after it.
    let oldest = oldest.format("%Y-%m-%dT%H:%M:%S").to_string();
    let mut transaction = pool.begin().await?;
    sqlx::query!("SELECT pg_advisory_xact_lock($1)", EXPIRING)
        .execute(&mut *transaction)
        .await?;
    let changed = sqlx::query!(
        r#"WITH old AS (
               SELECT org_id, delivery_id FROM deliveries
               WHERE changed_at - created_at > interval '1 hour'
                 AND (attempts -> 0 ->> 'at') COLLATE "C" < $1
               ORDER BY (attempts -> 0 ->> 'at') COLLATE "C" LIMIT $2
           )
           UPDATE deliveries
           SET attempts = jsonb_path_query_array(attempts, '$[*] ? (@.at >= $oldest)',
                                                 jsonb_build_object('oldest', $1::text))
           FROM old
           WHERE deliveries.org_id = old.org_id
             AND deliveries.delivery_id = old.delivery_id"#,
        oldest,
        i64::from(limit),
    )
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(changed.rows_affected())
}
