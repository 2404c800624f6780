//! Exact counters of rows, changed in the transaction that changes the rows.

use std::collections::BTreeMap;

use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

/// The key of a counter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Counted {
    org_id: String,
    kind: &'static str,
    parent: String,
    state: String,
}

/// The changes of a batch to the counters.
#[derive(Debug, Default)]
pub(super) struct Totals(BTreeMap<Counted, i64>);

impl Totals {
    /// Counts rows of a list that can be queried as a whole.
    pub(super) fn add(&mut self, org_id: &str, kind: &'static str, count: i64) {
        self.add_within(org_id, kind, "", "", count);
    }

    /// Counts rows of one state in a list that belongs to `parent`.
    pub(super) fn add_within(
        &mut self,
        org_id: &str,
        kind: &'static str,
        parent: &str,
        state: &str,
        count: i64,
    ) {
        let counted = Counted {
            org_id: org_id.to_owned(),
            kind,
            parent: parent.to_owned(),
            state: state.to_owned(),
        };
        *self.0.entry(counted).or_default() += count;
    }

    /// Writes the changes, in the order of the keys.
    pub(super) async fn write(mut self, rows: &mut PgConnection) -> Result<(), sqlx::Error> {
        self.0.retain(|_, change| *change != 0);
        if self.0.is_empty() {
            return Ok(());
        }
        let keys = || self.0.keys();
        sqlx::query!(
            "INSERT INTO totals (org_id, kind, parent, state, count)
             SELECT * FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[])
             ON CONFLICT (org_id, kind, parent, state)
             DO UPDATE SET count = totals.count + excluded.count",
            keys().map(|key| key.org_id.as_str()).bind_iter() as _,
            keys().map(|key| key.kind).bind_iter() as _,
            keys().map(|key| key.parent.as_str()).bind_iter() as _,
            keys().map(|key| key.state.as_str()).bind_iter() as _,
            self.0.values().copied().bind_iter() as _,
        )
        .execute(rows)
        .await?;
        Ok(())
    }
}
