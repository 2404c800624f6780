//! The number of records with each value of the fields that lists are filtered by.

use std::borrow::Cow;
use std::collections::BTreeMap;

use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

/// A value as it was written, with its organization and column.
type Had<'a> = (&'a str, &'static str, Cow<'a, str>);

/// The changes of a batch to the numbers.
#[derive(Debug, Default)]
pub(super) struct ByValue<'a>(BTreeMap<Had<'a>, i64>);

impl<'a> ByValue<'a> {
    /// Counts a record that gains or loses this value; an empty value is not counted.
    pub(super) fn add(
        &mut self,
        org_id: &'a str,
        field: &'static str,
        value: Cow<'a, str>,
        count: i64,
    ) {
        if !value.is_empty() {
            *self.0.entry((org_id, field, value)).or_default() += count;
        }
    }

    /// Writes the changes, in the order of the keys. Postgres decides which values are the same, as
    /// it compares the values of queries as well.
    pub(super) async fn write(
        mut self,
        rows: &mut PgConnection,
        kind: &'static str,
    ) -> Result<(), sqlx::Error> {
        self.0.retain(|_, change| *change != 0);
        if self.0.is_empty() {
            return Ok(());
        }
        sqlx::query!(
            "INSERT INTO field_totals (org_id, kind, field, value, count)
             SELECT org_id, $1, field, key, sum(change)::bigint
             FROM UNNEST($2::text[], $3::text[], $4::text[], $5::bigint[])
                 AS changed (org_id, field, value, change), lower(left(value, 100)) AS key
             GROUP BY org_id, field, key HAVING sum(change) <> 0
             ORDER BY org_id, field, key COLLATE \"C\"
             ON CONFLICT (org_id, kind, field, value)
             DO UPDATE SET count = field_totals.count + excluded.count",
            kind,
            self.0.keys().map(|had| had.0).bind_iter() as _,
            self.0.keys().map(|had| had.1).bind_iter() as _,
            self.0.keys().map(|had| &*had.2).bind_iter() as _,
            self.0.values().copied().bind_iter() as _,
        )
        .execute(&mut *rows)
        .await?;
        self.0.retain(|_, change| *change < 0);
        if self.0.is_empty() {
            return Ok(());
        }
        sqlx::query!(
            "DELETE FROM field_totals AS total
             USING UNNEST($2::text[], $3::text[], $4::text[]) AS less (org_id, field, value)
             WHERE total.org_id = less.org_id AND total.kind = $1 AND total.field = less.field
               AND total.value = lower(left(less.value, 100)) AND total.count = 0",
            kind,
            self.0.keys().map(|had| had.0).bind_iter() as _,
            self.0.keys().map(|had| had.1).bind_iter() as _,
            self.0.keys().map(|had| &*had.2).bind_iter() as _,
        )
        .execute(rows)
        .await?;
        Ok(())
    }
}
