//! The figures of the page, read from counters and indexes: no cost grows with the records.

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use minijinja::{Value, context};
use schemas::OrgId;
use sqlx::PgPool;

use crate::business::{Analytics, analytics_of};
use crate::pages::COUNTED;
use crate::pages::amounts::money;

/// The number of newest leads that are considered.
pub(super) const LEADS: i64 = 10_000;
/// The number of hours shown.
pub(super) const HOURS: i64 = 24;

/// The figures of the page.
pub(super) struct Figures {
    pub(super) now: DateTime<Utc>,
    pub(super) analytics: Analytics,
    pub(super) orders: Vec<Counted>,
    pub(super) leads: Vec<Brought>,
    pub(super) runs: Vec<Begun>,
    pub(super) deliveries: Vec<Begun>,
}

/// The count of a state.
pub(super) struct Counted {
    pub(super) state: String,
    pub(super) count: i64,
}

/// Leads from one source.
pub(super) struct Brought {
    pub(super) source: Option<String>,
    pub(super) leads: i64,
    pub(super) converted: i64,
}

/// Runs or deliveries that began in one hour.
pub(super) struct Begun {
    pub(super) hour: DateTime<Utc>,
    pub(super) count: i64,
    pub(super) failed: i64,
}

/// A sum of hours, which may have been cut off where counting ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sum(pub(super) i64);

impl Sum {
    /// All runs or deliveries.
    pub(super) fn of_all(hours: &[Begun]) -> Self {
        Self(hours.iter().map(|hour| hour.count).sum())
    }

    /// Those that failed.
    pub(super) fn of_failed(hours: &[Begun]) -> Self {
        Self(hours.iter().map(|hour| hour.failed).sum())
    }

    /// Whether there may be more.
    pub(super) fn is_cut(self) -> bool {
        self.0 >= COUNTED
    }
}

impl Figures {
    pub(super) async fn find(
        org: &OrgId,
        now: DateTime<Utc>,
        models: &PgPool,
    ) -> Result<Self, service::HttpError> {
        let since = first_hour(now);
        Ok(Self {
            now,
            analytics: analytics_of(org, now.date_naive(), models).await?,
            orders: find_orders(org, models).await?,
            leads: find_sources(org, models).await?,
            runs: find_runs(org, since, models).await?,
            deliveries: find_deliveries(org, since, models).await?,
        })
    }

    /// Whether there are any orders or leads.
    pub(super) fn has_business(&self) -> bool {
        self.analytics.total_orders > 0 || self.analytics.total_leads > 0
    }

    /// Returns the sums above the charts.
    pub(super) fn tiles(&self) -> Value {
        let tile = |sum: Sum| context! { count => sum.0, is_cut => sum.is_cut() };
        context! {
            revenue => money(self.analytics.total_revenue),
            orders => self.analytics.total_orders,
            leads => self.analytics.total_leads,
            rate => self.analytics.conversion_rate,
            runs => tile(Sum::of_all(&self.runs)),
            runs_failed => tile(Sum::of_failed(&self.runs)),
            deliveries => tile(Sum::of_all(&self.deliveries)),
            deliveries_failed => tile(Sum::of_failed(&self.deliveries)),
        }
    }
}

/// Returns the beginning of the first hour shown.
pub(super) fn first_hour(now: DateTime<Utc>) -> DateTime<Utc> {
    let present = now.duration_trunc(TimeDelta::hours(1)).unwrap_or(now);
    present - TimeDelta::hours(HOURS - 1)
}

pub(super) async fn find_orders(org: &OrgId, models: &PgPool) -> Result<Vec<Counted>, sqlx::Error> {
    sqlx::query_as!(
        Counted,
        "SELECT state, count FROM totals
         WHERE org_id = $1 AND kind = 'orders' AND parent = '' AND state <> '' ORDER BY state",
        org.as_str(),
    )
    .fetch_all(models)
    .await
}

/// Only among the newest leads: their index provides them without reading the others.
pub(super) async fn find_sources(
    org: &OrgId,
    models: &PgPool,
) -> Result<Vec<Brought>, sqlx::Error> {
    sqlx::query_as!(
        Brought,
        r#"SELECT nullif(left(source, 200), '') AS source, count(*) AS "leads!",
                  count(*) FILTER (WHERE upper(status) IN ('QUALIFIED', 'CONVERTED', 'WON'))
                      AS "converted!"
           FROM (SELECT source, status FROM leads WHERE org_id = $1
                 ORDER BY created_at DESC, id LIMIT $2) AS newest
           GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 8"#,
        org.as_str(),
        LEADS,
    )
    .fetch_all(models)
    .await
}

/// The counters show which workflows have runs, and which have some that failed. All runs and those
/// that failed are each read from an index of their own, up to as many as are counted.
pub(super) async fn find_runs(
    org: &OrgId,
    since: DateTime<Utc>,
    models: &PgPool,
) -> Result<Vec<Begun>, sqlx::Error> {
    sqlx::query_as!(
        Begun,
        r#"SELECT date_trunc('hour', begun.created_at, 'UTC') AS "hour!",
                  count(*) FILTER (WHERE NOT begun.failed) AS "count!",
                  count(*) FILTER (WHERE begun.failed) AS "failed!"
           FROM ((SELECT run.created_at, false AS failed
                  FROM (SELECT DISTINCT parent FROM totals
                        WHERE org_id = $1 AND kind = 'runs' AND count > 0) AS counted
                  CROSS JOIN LATERAL (
                      SELECT created_at FROM runs
                      WHERE org_id = $1 AND workflow_id = counted.parent AND created_at >= $2
                      ORDER BY created_at DESC, run_id LIMIT $3
                  ) AS run LIMIT $3)
                 UNION ALL
                 (SELECT run.created_at, true AS failed
                  FROM (SELECT parent FROM totals
                        WHERE org_id = $1 AND kind = 'runs' AND state = 'FAILED' AND count > 0
                       ) AS counted
                  CROSS JOIN LATERAL (
                      SELECT created_at FROM runs
                      WHERE org_id = $1 AND workflow_id = counted.parent AND state = 'FAILED'
                        AND created_at >= $2
                      ORDER BY created_at DESC, run_id LIMIT $3
                  ) AS run LIMIT $3)) AS begun
           GROUP BY 1 ORDER BY 1"#,
        org.as_str(),
        since,
        COUNTED,
    )
    .fetch_all(models)
    .await
}

/// The same for deliveries.
pub(super) async fn find_deliveries(
    org: &OrgId,
    since: DateTime<Utc>,
    models: &PgPool,
) -> Result<Vec<Begun>, sqlx::Error> {
    sqlx::query_as!(
        Begun,
        r#"WITH counted AS MATERIALIZED (
               SELECT DISTINCT parent FROM totals
               WHERE org_id = $1 AND kind = 'deliveries' AND count > 0
           )
           SELECT date_trunc('hour', begun.created_at, 'UTC') AS "hour!",
                  count(*) FILTER (WHERE NOT begun.failed) AS "count!",
                  count(*) FILTER (WHERE begun.failed) AS "failed!"
           FROM ((SELECT sent.created_at, false AS failed
                  FROM counted CROSS JOIN LATERAL (
                      SELECT created_at FROM deliveries
                      WHERE org_id = $1 AND webhook_id = counted.parent AND created_at >= $2
                      ORDER BY created_at DESC, delivery_id LIMIT $3
                  ) AS sent LIMIT $3)
                 UNION ALL
                 (SELECT sent.created_at, true AS failed
                  FROM counted CROSS JOIN LATERAL (
                      SELECT created_at FROM deliveries
                      WHERE org_id = $1 AND webhook_id = counted.parent AND created_at >= $2
                        AND status = 'FAILED'
                      ORDER BY created_at DESC, delivery_id LIMIT $3
                  ) AS sent LIMIT $3)) AS begun
           GROUP BY 1 ORDER BY 1"#,
        org.as_str(),
        since,
        COUNTED,
    )
    .fetch_all(models)
    .await
}
