//! When the records of each organization last changed, kept in the transaction that changes them.

use std::collections::BTreeMap;

use schemas::Recorded;
use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

use crate::projection::bigint;

/// Saves when events have changed records of a kind. Every call gives the organization a new time,
/// in whole seconds like HTTP dates: an event that was applied late does not hide behind newer
/// ones.
pub(super) async fn note(
    rows: &mut PgConnection,
    kind: &str,
    events: &[&Recorded],
) -> Result<(), sqlx::Error> {
    let mut newest = BTreeMap::new();
    for recorded in events {
        let sequence = newest.entry(recorded.stream.org.as_str()).or_default();
        *sequence = recorded.sequence.max(*sequence);
    }
    // In the order of the keys, like totals.
    sqlx::query!(
        "INSERT INTO record_changes (org_id, kind, sequence, changed_at)
         SELECT org_id, $2, sequence, date_trunc('second', clock_timestamp())
         FROM UNNEST($1::text[], $3::bigint[]) AS changed (org_id, sequence)
         ON CONFLICT (org_id, kind) DO UPDATE SET
             sequence = excluded.sequence,
             changed_at = greatest(excluded.changed_at,
                                   record_changes.changed_at + interval '1 second')",
        newest.keys().copied().bind_iter() as _,
        kind,
        newest.values().copied().map(bigint).bind_iter() as _,
    )
    .execute(rows)
    .await?;
    Ok(())
}
