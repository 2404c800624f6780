//! What is counted of orders beside their rows: how many there are of each status, and what they
//! bring in month by month.

use schemas::record::{Order, OrderStatus};
use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

use super::revenue::Revenue;
use super::tables::Orders;
use super::{Key, Put, Table as _};
use crate::projection::totals::Totals;

/// The status as it is stored.
pub(super) fn status_name(status: OrderStatus) -> &'static str {
    match status {
        OrderStatus::PaymentPending => "PAYMENT_PENDING",
        OrderStatus::Active => "ACTIVE",
        OrderStatus::Completed => "COMPLETED",
        OrderStatus::Cancelled => "CANCELLED",
    }
}

/// Counts the orders of a batch anew: takes off what the rows say now, adds what they will say.
pub(super) async fn recount(
    rows: &mut PgConnection,
    put: &[Put<'_, Order>],
    gone: &[Key<'_>],
    totals: &mut Totals,
) -> Result<(), sqlx::Error> {
    let mut revenue = Revenue::default();
    let keys = || put.iter().map(|put| put.key).chain(gone.iter().copied());
    let before = sqlx::query!(
        r#"SELECT org_id AS "org_id!", status, amount, created_at
         FROM UNNEST($1::text[], $2::text[]) AS touched (org_id, id)
         JOIN orders USING (org_id, id)"#,
        keys().map(|key| key.0).bind_iter() as _,
        keys().map(|key| key.1).bind_iter() as _,
    )
    .fetch_all(&mut *rows)
    .await?;
    for row in before {
        totals.add_within(&row.org_id, Orders::NAME, "", &row.status, -1);
        if brings_in(&row.status) {
            revenue.add(&row.org_id, row.created_at, -i128::from(row.amount));
        }
    }
    for Put { key, record, .. } in put {
        let status = status_name(record.status);
        totals.add_within(key.0, Orders::NAME, "", status, 1);
        if brings_in(status) {
            revenue.add(key.0, record.created_at, i128::from(record.amount));
        }
    }
    revenue.write(rows).await
}

/// Whether orders of a status count as revenue.
fn brings_in(status: &str) -> bool {
    matches!(status, "ACTIVE" | "COMPLETED")
}
