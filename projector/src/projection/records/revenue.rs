//! Exact sums of revenue by month, changed in the transaction that changes the orders.

use std::collections::BTreeMap;

use chrono::{DateTime, Datelike as _, NaiveDate, Utc};
use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

/// The changes of a batch to the months of organizations. Sums of many 64-bit amounts need not fit
/// into 64 bits.
#[derive(Debug, Default)]
pub(super) struct Revenue(BTreeMap<(String, NaiveDate), i128>);

impl Revenue {
    /// Adds an amount to the month, in UTC, of a time.
    pub(super) fn add(&mut self, org_id: &str, time: DateTime<Utc>, amount: i128) {
        let day = time.date_naive();
        let month = day.with_day(1).unwrap_or(day);
        *self.0.entry((org_id.to_owned(), month)).or_default() += amount;
    }

    /// Writes the changes, in the order of the keys. Months whose sum is zero have no row, so that
    /// the rows do not depend on how events were batched.
    pub(super) async fn write(mut self, rows: &mut PgConnection) -> Result<(), sqlx::Error> {
        self.0.retain(|_, change| *change != 0);
        if self.0.is_empty() {
            return Ok(());
        }
        let keys = || self.0.keys();
        let written = sqlx::query_scalar!(
            r#"INSERT INTO revenue_months (org_id, month, revenue)
               SELECT org_id, month, change::numeric
               FROM UNNEST($1::text[], $2::date[], $3::text[]) AS changes (org_id, month, change)
               ON CONFLICT (org_id, month)
               DO UPDATE SET revenue = revenue_months.revenue + excluded.revenue
               RETURNING revenue = 0 AS "is_nothing!""#,
            keys().map(|(org_id, _)| org_id).bind_iter() as _,
            keys().map(|(_, month)| *month).bind_iter() as _,
            self.0.values().map(ToString::to_string).bind_iter() as _,
        )
        .fetch_all(&mut *rows)
        .await?;
        if written.contains(&true) {
            sqlx::query!(
                "DELETE FROM revenue_months
                 USING UNNEST($1::text[], $2::date[]) AS changed (org_id, month)
                 WHERE revenue_months.org_id = changed.org_id
                   AND revenue_months.month = changed.month AND revenue = 0",
                keys().map(|(org_id, _)| org_id).bind_iter() as _,
                keys().map(|(_, month)| *month).bind_iter() as _,
            )
            .execute(rows)
            .await?;
        }
        Ok(())
    }
}
