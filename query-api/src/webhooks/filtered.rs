//! An endpoint's deliveries of one status.

use schemas::OrgId;
use sqlx::PgPool;

use super::deliveries::Delivery;
use crate::paging::Page;

/// Of those that are no failures, the newest are looked through: they have no index of their own.
pub(crate) const LOOKED_THROUGH: i64 = 10_000;

/// Deliveries of a status, newest first; all that failed, and of the others those among the newest.
pub(crate) async fn find_deliveries_in(
    org: &OrgId,
    webhook: &str,
    status: &str,
    page: &Page,
    models: &PgPool,
) -> Result<Vec<Delivery>, sqlx::Error> {
    if status == "FAILED" {
        return find_failed(org, webhook, page, models).await;
    }
    sqlx::query_as!(
        Delivery,
        r#"SELECT delivery_id AS id, event_id, event_type, status, next_attempt_at,
                  attempts AS "attempts: _", created_at, 0::bigint AS "total!"
           FROM (SELECT * FROM deliveries
                 WHERE org_id = $1 AND webhook_id = $2
                 ORDER BY created_at DESC, delivery_id LIMIT $7) AS newest
           WHERE created_at <= coalesce($3::timestamptz, 'infinity')
             AND (created_at < coalesce($3::timestamptz, 'infinity') OR delivery_id > $4)
             AND status = $6
           ORDER BY created_at DESC, delivery_id LIMIT $5"#,
        org.as_str(),
        webhook,
        page.after_time(),
        page.after_id(),
        page.fetched(),
        status,
        LOOKED_THROUGH,
    )
    .fetch_all(models)
    .await
}

async fn find_failed(
    org: &OrgId,
    webhook: &str,
    page: &Page,
    models: &PgPool,
) -> Result<Vec<Delivery>, sqlx::Error> {
    sqlx::query_as!(
        Delivery,
        r#"SELECT delivery_id AS id, event_id, event_type, status, next_attempt_at,
                  attempts AS "attempts: _", created_at, 0::bigint AS "total!"
           FROM deliveries
           WHERE org_id = $1 AND webhook_id = $2 AND status = 'FAILED'
             AND created_at <= coalesce($3::timestamptz, 'infinity')
             AND (created_at < coalesce($3::timestamptz, 'infinity') OR delivery_id > $4)
           ORDER BY created_at DESC, delivery_id LIMIT $5"#,
        org.as_str(),
        webhook,
        page.after_time(),
        page.after_id(),
        page.fetched(),
    )
    .fetch_all(models)
    .await
}
