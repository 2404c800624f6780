//! Exact counts of records by the value of a field and by creation time, which series are grouped
//! by.

use std::borrow::Cow;
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

use super::by_time::{Counted, stretches};
use super::orders::brought_in;
use super::{Change, Put, Table};

/// How many characters of a value are distinguished.
const VALUE_LENGTH: usize = 100;

/// The organization, the column, the length in minutes and the beginning of a stretch of time, and
/// the value.
type Key<'a> = (&'a str, &'static str, i16, DateTime<Utc>, Cow<'a, str>);

/// The changes of a batch to the counts.
#[derive(Debug, Default)]
pub(super) struct Grouped<'a>(BTreeMap<Key<'a>, Counted>);

impl<'a> Grouped<'a> {
    /// Subtracts the rows before a batch, and adds the rows after it.
    pub(super) fn of<T: Table>(change: &'a Change<'_, T::Record>) -> Self {
        let mut grouped = Self::default();
        for held in &change.before {
            let revenue = -brought_in(&held.state, held.amount);
            for (field, value) in T::GROUPS.iter().zip(&held.groups) {
                let value = beginning_of(value.into());
                grouped.add((&held.org_id, field, value), held.created_at, -1, revenue);
            }
        }
        for Put { key, record, .. } in &change.put {
            let (created_at, state) = T::listed(record);
            let revenue = brought_in(&state, T::amount(record));
            for (field, value) in T::GROUPS.iter().zip(T::groups(record)) {
                let value = beginning_of(value.unwrap_or_default());
                grouped.add((key.0, field, value), created_at, 1, revenue);
            }
        }
        grouped
    }

    fn add(
        &mut self,
        (org_id, field, value): (&'a str, &'static str, Cow<'a, str>),
        time: DateTime<Utc>,
        count: i64,
        revenue: i128,
    ) {
        for (minutes, begins) in stretches(time) {
            let key = (org_id, field, minutes, begins, value.clone());
            self.0.entry(key).or_default().add(count, revenue);
        }
    }

    /// Writes the changes of a kind, in the order of the keys.
    pub(super) async fn write(
        mut self,
        rows: &mut PgConnection,
        kind: &'static str,
    ) -> Result<(), sqlx::Error> {
        self.0.retain(|_, counted| !counted.is_nothing());
        if self.0.is_empty() {
            return Ok(());
        }
        let keys = || self.0.keys();
        let written = sqlx::query_scalar!(
            r#"INSERT INTO values_by_time AS held
                   (org_id, kind, field, minutes, begins, value, count, revenue)
               SELECT org_id, $1, field, minutes, begins, value, count, revenue::numeric
               FROM UNNEST($2::text[], $3::text[], $4::smallint[], $5::timestamptz[], $6::text[],
                           $7::bigint[], $8::text[])
                   AS changed (org_id, field, minutes, begins, value, count, revenue)
               ON CONFLICT (org_id, field, minutes, begins, kind, value) DO UPDATE SET
                   count = held.count + excluded.count,
                   revenue = held.revenue + excluded.revenue
               RETURNING count = 0 AS "is_nothing!""#,
            kind,
            keys().map(|key| key.0).bind_iter() as _,
            keys().map(|key| key.1).bind_iter() as _,
            keys().map(|key| key.2).bind_iter() as _,
            keys().map(|key| key.3).bind_iter() as _,
            keys().map(|key| &*key.4).bind_iter() as _,
            self.0.values().map(|counted| counted.count).bind_iter() as _,
            self.0.values().map(Counted::revenue_text).bind_iter() as _,
        )
        .fetch_all(&mut *rows)
        .await?;
        if !written.contains(&true) {
            return Ok(());
        }
        sqlx::query!(
            "DELETE FROM values_by_time AS held
             USING UNNEST($2::text[], $3::text[], $4::smallint[], $5::timestamptz[], $6::text[])
                 AS changed (org_id, field, minutes, begins, value)
             WHERE held.org_id = changed.org_id AND held.field = changed.field
               AND held.minutes = changed.minutes AND held.begins = changed.begins
               AND held.kind = $1 AND held.value = changed.value AND held.count = 0",
            kind,
            keys().map(|key| key.0).bind_iter() as _,
            keys().map(|key| key.1).bind_iter() as _,
            keys().map(|key| key.2).bind_iter() as _,
            keys().map(|key| key.3).bind_iter() as _,
            keys().map(|key| &*key.4).bind_iter() as _,
        )
        .execute(rows)
        .await
        .map(drop)
    }
}

/// The part of a value that is distinguished, cut like Postgres' `left` does.
fn beginning_of(value: Cow<'_, str>) -> Cow<'_, str> {
    match value.char_indices().nth(VALUE_LENGTH) {
        None => value,
        Some((end, _)) => match value {
            Cow::Borrowed(value) => Cow::Borrowed(&value[..end]),
            Cow::Owned(mut value) => {
                value.truncate(end);
                Cow::Owned(value)
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_distinguished_by_their_beginning() {
        let long = "ł".repeat(VALUE_LENGTH + 1);
        let cut = beginning_of(long.as_str().into());
        assert_eq!(cut.chars().count(), VALUE_LENGTH);
        assert_eq!(beginning_of(long.clone().into()), cut);
        assert_eq!(beginning_of("Łódź".into()), "Łódź");
    }
}
