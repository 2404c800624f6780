//! Counters of leads besides their rows: how many were created in each stretch of time.

use schemas::record::Lead;
use sqlx::PgConnection;

use super::by_time::ByTime;
use super::{Change, Put};
use crate::projection::totals::Totals;

/// Recounts the leads of a batch: subtracts the current rows, adds the new ones.
pub(super) async fn recount(
    rows: &mut PgConnection,
    change: &Change<'_, Lead>,
    _totals: &mut Totals,
) -> Result<(), sqlx::Error> {
    let mut by_time = ByTime::default();
    for row in &change.before {
        by_time.add(&row.org_id, row.created_at, -1, 0);
    }
    for Put { key, record, .. } in &change.put {
        by_time.add(key.0, record.created_at, 1, 0);
    }
    by_time.write_leads(rows).await
}
