//! Exact counts of records by creation time, changed in the transaction that changes the records.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

/// The lengths of the stretches, in minutes: a quarter of an hour and a day.
const LENGTHS: [i16; 2] = [15, 1_440];

/// A stretch of time of an organization: its length in minutes and its beginning.
type Stretch = (String, i16, DateTime<Utc>);

/// The change of a count.
#[derive(Debug, Default)]
pub(super) struct Counted {
    pub(super) count: i64,
    revenue: i128,
}

impl Counted {
    pub(super) fn add(&mut self, count: i64, revenue: i128) {
        self.count += count;
        self.revenue += revenue;
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.count == 0 && self.revenue == 0
    }

    /// The revenue as text for a numeric column.
    pub(super) fn revenue_text(&self) -> String {
        self.revenue.to_string()
    }
}

/// The changes of a batch to the counts. Sums of many 64-bit amounts need not fit into 64 bits.
#[derive(Debug, Default)]
pub(super) struct ByTime(BTreeMap<Stretch, Counted>);

/// Writes changes to a table, in the order of the keys. Stretches without records have no row, so
/// that the rows do not depend on how events were batched.
macro_rules! write_into {
    ($table:literal, $changes:expr, $rows:expr $(, $sum:literal $parameter:literal = $value:expr)?) => {{
        let changes: &BTreeMap<Stretch, Counted> = $changes;
        let rows: &mut PgConnection = $rows;
        let keys = || changes.keys();
        let written = sqlx::query_scalar!(
            "INSERT INTO " + $table + " AS held (org_id, minutes, begins, count" + $(", " + $sum +)? ")
             SELECT org_id, minutes, begins, count" + $(", " + $sum + "::numeric" +)? "
             FROM UNNEST($1::text[], $2::smallint[], $3::timestamptz[], $4::bigint[]"
                + $(", " + $parameter +)? ") AS changes (org_id, minutes, begins, count"
                + $(", " + $sum +)? ")
             ON CONFLICT (org_id, minutes, begins) DO UPDATE SET
                 count = held.count + excluded.count"
                + $(", " + $sum + " = held." + $sum + " + excluded." + $sum +)? "
             RETURNING count = 0 AS \"is_nothing!\"",
            keys().map(|(org_id, ..)| org_id).bind_iter() as _,
            keys().map(|(_, minutes, _)| *minutes).bind_iter() as _,
            keys().map(|(.., begins)| *begins).bind_iter() as _,
            changes.values().map(|change| change.count).bind_iter() as _,
            $(changes.values().map($value).bind_iter() as _,)?
        )
        .fetch_all(&mut *rows)
        .await?;
        if written.contains(&true) {
            sqlx::query!(
                "DELETE FROM " + $table + " AS held
                 USING UNNEST($1::text[], $2::smallint[], $3::timestamptz[])
                     AS changed (org_id, minutes, begins)
                 WHERE held.org_id = changed.org_id AND held.minutes = changed.minutes
                   AND held.begins = changed.begins AND held.count = 0",
                keys().map(|(org_id, ..)| org_id).bind_iter() as _,
                keys().map(|(_, minutes, _)| *minutes).bind_iter() as _,
                keys().map(|(.., begins)| *begins).bind_iter() as _,
            )
            .execute(rows)
            .await?;
        }
        Ok(())
    }};
}

impl ByTime {
    /// Counts records that were created at a time.
    pub(super) fn add(&mut self, org_id: &str, time: DateTime<Utc>, count: i64, revenue: i128) {
        for (minutes, begins) in stretches(time) {
            let key = (org_id.to_owned(), minutes, begins);
            self.0.entry(key).or_default().add(count, revenue);
        }
    }

    pub(super) async fn write_orders(self, rows: &mut PgConnection) -> Result<(), sqlx::Error> {
        write_into!("orders_by_time", &self.changed(), rows,
            "revenue" "$5::text[]" = Counted::revenue_text)
    }

    pub(super) async fn write_leads(self, rows: &mut PgConnection) -> Result<(), sqlx::Error> {
        write_into!("leads_by_time", &self.changed(), rows)
    }

    fn changed(mut self) -> BTreeMap<Stretch, Counted> {
        self.0.retain(|_, change| !change.is_nothing());
        self.0
    }
}

/// The stretches that contain a time: the length of each in minutes, and its beginning.
pub(super) fn stretches(time: DateTime<Utc>) -> [(i16, DateTime<Utc>); 2] {
    LENGTHS.map(|minutes| (minutes, beginning(time, minutes)))
}

/// The beginning of the stretch that contains a time, counted from 1970, also for times before.
fn beginning(time: DateTime<Utc>, minutes: i16) -> DateTime<Utc> {
    let length = i64::from(minutes) * 60;
    let seconds = time.timestamp().div_euclid(length) * length;
    DateTime::from_timestamp(seconds, 0).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn a_time_falls_in_a_quarter_and_a_day() {
        for (at, quarter, day) in [
            (
                "2026-03-29T01:59:59.999999Z",
                "2026-03-29T01:45:00Z",
                "2026-03-29T00:00:00Z",
            ),
            (
                "2026-03-29T00:00:00Z",
                "2026-03-29T00:00:00Z",
                "2026-03-29T00:00:00Z",
            ),
            (
                "1969-12-31T23:59:59Z",
                "1969-12-31T23:45:00Z",
                "1969-12-31T00:00:00Z",
            ),
            (
                "0001-01-01T00:14:00Z",
                "0001-01-01T00:00:00Z",
                "0001-01-01T00:00:00Z",
            ),
        ] {
            assert_eq!(beginning(time(at), 15), time(quarter), "{at}");
            assert_eq!(beginning(time(at), 1_440), time(day), "{at}");
        }
    }

    #[test]
    fn what_cancels_out_is_not_written() {
        let mut counts = ByTime::default();
        counts.add("org", time("2026-03-29T01:50:00Z"), 1, 500);
        counts.add("org", time("2026-03-29T01:55:00Z"), -1, -500);
        assert!(counts.changed().is_empty());
    }
}
