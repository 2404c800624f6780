//! What is counted of clients beside their rows: how many of each city came to be in each stretch
//! of time.

use schemas::record::Client;
use sqlx::PgConnection;

use super::grouped::Grouped;
use super::tables::Clients;
use super::{Change, Table as _};
use crate::projection::totals::Totals;

/// Counts the clients of a batch anew: takes off what the rows say now, adds what they will say.
pub(super) async fn recount(
    rows: &mut PgConnection,
    change: &Change<'_, Client>,
    _totals: &mut Totals,
) -> Result<(), sqlx::Error> {
    let grouped = Grouped::of::<Clients>(change, |_| 0, |_| 0);
    grouped.write(rows, Clients::NAME).await
}
