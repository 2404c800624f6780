//! What is counted of leads beside their rows: how many came to be in each stretch of time.

use schemas::record::Lead;
use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

use super::by_time::ByTime;
use super::{Gone, Put, touched};
use crate::projection::totals::Totals;

/// Counts the leads of a batch anew: takes off what the rows say now, adds what they will say.
pub(super) async fn recount(
    rows: &mut PgConnection,
    put: &[Put<'_, Lead>],
    gone: &[Gone<'_>],
    _totals: &mut Totals,
) -> Result<(), sqlx::Error> {
    let mut by_time = ByTime::default();
    let before = sqlx::query!(
        r#"SELECT org_id AS "org_id!", created_at
           FROM UNNEST($1::text[], $2::text[]) AS touched (org_id, id)
           JOIN leads USING (org_id, id)"#,
        touched(put, gone).map(|key| key.0).bind_iter() as _,
        touched(put, gone).map(|key| key.1).bind_iter() as _,
    )
    .fetch_all(&mut *rows)
    .await?;
    for row in before {
        by_time.add(&row.org_id, row.created_at, -1, 0);
    }
    for Put { key, record, .. } in put {
        by_time.add(key.0, record.created_at, 1, 0);
    }
    by_time.write_leads(rows).await
}
