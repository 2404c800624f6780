//! An endpoint's deliveries of one status.

use schemas::OrgId;
use sqlx::PgPool;

use super::deliveries::Delivery;
use crate::paging::Page;

/// For statuses other than FAILED, this many of the newest are scanned: they have no index.
pub(crate) const LOOKED_THROUGH: i64 = 10_000;

/// Selects a page of the considered deliveries, newest first.
macro_rules! find {
    ($from:literal, $org:expr, $webhook:expr, $page:expr, $models:expr $(, $more:expr)*) => {
        sqlx::query_as!(
            Delivery,
            r#"SELECT delivery_id AS id, event_id, event_type, status, next_attempt_at,
                      attempts AS "attempts: _", created_at, 0::bigint AS "total!"
               FROM "# + $from + r#"
                 AND created_at <= coalesce($3::timestamptz, 'infinity')
                 AND (created_at < coalesce($3::timestamptz, 'infinity') OR delivery_id > $4)
               ORDER BY created_at DESC, delivery_id LIMIT $5"#,
            $org.as_str(),
            $webhook,
            $page.after_time(),
            $page.after_id(),
            $page.fetched(),
            $($more,)*
        )
        .fetch_all($models)
        .await
    };
}

/// Returns deliveries of a status, newest first: all that failed, others only among the newest.
pub(crate) async fn find_deliveries_in(
    org: &OrgId,
    webhook: &str,
    status: &str,
    page: &Page,
    models: &PgPool,
) -> Result<Vec<Delivery>, sqlx::Error> {
    if status == "FAILED" {
        return find!(
            "deliveries WHERE org_id = $1 AND webhook_id = $2 AND status = 'FAILED'",
            org,
            webhook,
            page,
            models
        );
    }
    find!(
        "(SELECT * FROM deliveries WHERE org_id = $1 AND webhook_id = $2
          ORDER BY created_at DESC, delivery_id LIMIT $7) AS newest WHERE status = $6",
        org,
        webhook,
        page,
        models,
        status,
        LOOKED_THROUGH
    )
}
