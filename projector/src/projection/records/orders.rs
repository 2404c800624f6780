//! Counters of orders besides their rows: how many there are of each status, how many were created
//! in each stretch of time, and their revenue by month and by stretch.

use schemas::record::{Order, OrderStatus};
use sqlx::PgConnection;

use super::by_time::ByTime;
use super::revenue::Revenue;
use super::tables::Orders;
use super::{Change, Put, Table as _};
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

/// Recounts the orders of a batch: subtracts the current rows, adds the new ones.
pub(super) async fn recount(
    rows: &mut PgConnection,
    change: &Change<'_, Order>,
    totals: &mut Totals,
) -> Result<(), sqlx::Error> {
    let (mut revenue, mut by_time) = (Revenue::default(), ByTime::default());
    for row in &change.before {
        totals.add_within(&row.org_id, Orders::NAME, "", &row.state, -1);
        let brought = brought_in(&row.state, row.amount);
        revenue.add(&row.org_id, row.created_at, -brought);
        by_time.add(&row.org_id, row.created_at, -1, -brought);
    }
    for Put { key, record, .. } in &change.put {
        let status = status_name(record.status);
        totals.add_within(key.0, Orders::NAME, "", status, 1);
        let brings_in = brought_in(status, record.amount);
        revenue.add(key.0, record.created_at, brings_in);
        by_time.add(key.0, record.created_at, 1, brings_in);
    }
    revenue.write(rows).await?;
    by_time.write_orders(rows).await
}

/// What an order of a status adds to the revenue.
pub(super) fn brought_in(status: &str, amount: i64) -> i128 {
    match status {
        "ACTIVE" | "COMPLETED" => i128::from(amount),
        _ => 0,
    }
}
