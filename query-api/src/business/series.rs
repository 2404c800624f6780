//! Totals per step, from counters of time intervals.

use chrono::NaiveDate;
use schemas::OrgId;
use serde::Serialize;
use service::HttpError;
use sqlx::PgPool;

use super::grouped::{Group, GroupBy, find_groups};
use super::span::{Bucket, Pieces, Span};

/// A step of the series.
#[derive(Debug, Serialize)]
pub(super) struct Step {
    /// Its first day.
    start: NaiveDate,
    /// Of its ACTIVE and COMPLETED orders, in minor units.
    revenue: i128,
    orders: i64,
    leads: i64,
    /// The same grouped by a field's value, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<Vec<Group>>,
}

/// Returns what was created in each step of a span, oldest first.
pub(super) async fn find_series(
    org: &OrgId,
    span: &Span,
    group_by: Option<GroupBy>,
    models: &PgPool,
) -> Result<Vec<Step>, HttpError> {
    let buckets = span.buckets();
    let pieces = Pieces::of(&buckets);
    let counted = sqlx::query!(
        r#"SELECT place AS "place!",
                  coalesce(trunc(sum(orders.revenue)), 0)::text AS "revenue!",
                  coalesce(sum(orders.count), 0)::bigint AS "orders!",
                  coalesce(sum(leads.count), 0)::bigint AS "leads!"
           FROM unnest($2::bigint[], $3::smallint[], $4::timestamptz[], $5::timestamptz[])
                    AS piece (place, minutes, begins, ends)
           CROSS JOIN LATERAL (
               SELECT sum(count) AS count, sum(revenue) AS revenue FROM orders_by_time
               WHERE org_id = $1 AND minutes = piece.minutes
                 AND begins >= piece.begins AND begins < piece.ends) AS orders
           CROSS JOIN LATERAL (
               SELECT sum(count) AS count FROM leads_by_time
               WHERE org_id = $1 AND minutes = piece.minutes
                 AND begins >= piece.begins AND begins < piece.ends) AS leads
           GROUP BY place ORDER BY place"#,
        org.as_str(),
        &pieces.places,
        &pieces.minutes,
        &pieces.begins,
        &pieces.ends,
    )
    .fetch_all(models)
    .await?;
    let mut groups = match group_by {
        Some(field) => Some(find_groups(org, &pieces, field, models).await?),
        None => None,
    };
    let mut counted = counted.into_iter().peekable();
    let steps = buckets.iter().zip(1_i64..).map(|(bucket, place)| {
        let groups = groups
            .as_mut()
            .map(|groups| groups.remove(&place).unwrap_or_default());
        // A day that a time zone skipped has no pieces.
        let Some(row) = counted.next_if(|row| row.place == place) else {
            return Ok(Step::empty(bucket, groups));
        };
        Ok(Step {
            start: bucket.start,
            revenue: row.revenue.parse().map_err(HttpError::internal)?,
            orders: row.orders,
            leads: row.leads,
            groups,
        })
    });
    steps.collect()
}

impl Step {
    fn empty(bucket: &Bucket, groups: Option<Vec<Group>>) -> Self {
        Self {
            start: bucket.start,
            revenue: 0,
            orders: 0,
            leads: 0,
            groups,
        }
    }
}
