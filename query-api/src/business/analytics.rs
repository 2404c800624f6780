//! `GET /api/v1/analytics`

use std::num::ParseIntError;
use std::sync::Arc;

use access::scope;
use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use chrono::{Datelike, Months, NaiveDate};
use schemas::OrgId;
use serde::Serialize;
use service::{Clock, HttpError};
use sqlx::PgPool;

use super::grouped::GroupBy;
use super::series::{Step, find_series};
use super::span::{Span, missing};
use crate::paging::Parameters;
use crate::progress::Projection;
use crate::reading::Reading;

/// Months in the trend.
const MONTHS: u32 = 12;

/// Totals of orders and leads.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Analytics {
    /// In minor units. Wide, because a sum of amounts may exceed the range of an amount.
    pub(crate) total_revenue: i128,
    pub(crate) total_orders: i64,
    pub(crate) total_leads: i64,
    pub(crate) conversion_rate: f64,
    pub(crate) monthly_revenue: Vec<MonthlyRevenue>,
}

#[derive(Debug, Serialize)]
pub(crate) struct MonthlyRevenue {
    pub(crate) month: String,
    pub(crate) revenue: i128,
}

/// The stored counters, with sums as text: no integer of Postgres is wide enough for them.
struct Counters {
    revenue: String,
    orders: i64,
    leads: i64,
    months: Vec<String>,
}

/// The summary, with the series if one was requested.
#[derive(Debug, Serialize)]
pub(super) struct AnalyticsBody {
    #[serde(flatten)]
    analytics: Analytics,
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<Vec<Step>>,
}

pub(super) async fn get_analytics(
    reading: Reading<scope::ReadAnalytics>,
    State(clock): State<Arc<dyn Clock>>,
    uri: Uri,
) -> Result<Json<AnalyticsBody>, HttpError> {
    let parameters = Parameters::of(&uri)?;
    let (span, group_by) = (
        Span::from_parameters(&parameters)?,
        GroupBy::from_parameters(&parameters)?,
    );
    if group_by.is_some() && span.is_none() {
        return Err(missing("from"));
    }
    let read_from: &[Projection] = match group_by {
        Some(GroupBy::City) => &[Projection::Orders, Projection::Leads, Projection::Clients],
        _ => &[Projection::Orders, Projection::Leads],
    };
    let models = reading.models(read_from).await?;
    let today = clock.now().date_naive();
    let analytics = analytics_of(reading.org(), today, models).await?;
    let series = match span {
        Some(span) => Some(find_series(reading.org(), &span, group_by, models).await?),
        None => None,
    };
    Ok(Json(AnalyticsBody { analytics, series }))
}

/// Returns the totals of an organization's orders and leads.
pub(crate) async fn analytics_of(
    org: &OrgId,
    today: NaiveDate,
    models: &PgPool,
) -> Result<Analytics, HttpError> {
    let months = months_up_to(today);
    let counters = find_counters(org, &months, models).await?;
    summarize(&months, &counters).map_err(HttpError::internal)
}

/// The first days of the last months, oldest first.
fn months_up_to(today: NaiveDate) -> Vec<NaiveDate> {
    let present = today.with_day(1).unwrap_or(today);
    let before = (0..MONTHS).rev().map(Months::new);
    before
        .filter_map(|months| present.checked_sub_months(months))
        .collect()
}

fn summarize(months: &[NaiveDate], counters: &Counters) -> Result<Analytics, ParseIntError> {
    let trend = months.iter().zip(&counters.months).map(|(month, revenue)| {
        Ok(MonthlyRevenue {
            month: month.format("%Y-%m").to_string(),
            revenue: revenue.parse()?,
        })
    });
    Ok(Analytics {
        total_revenue: counters.revenue.parse()?,
        total_orders: counters.orders,
        total_leads: counters.leads,
        conversion_rate: percentage(counters.orders, counters.leads),
        monthly_revenue: trend.collect::<Result<_, _>>()?,
    })
}

/// Returns the orders per hundred leads, rounded to two decimals, or 0 without leads.
#[expect(
    clippy::cast_precision_loss,
    reason = "percentages beyond 2^53 hundredths have no decimals to lose"
)]
fn percentage(orders: i64, leads: i64) -> f64 {
    if leads == 0 {
        return 0.0;
    }
    let (orders, leads) = (i128::from(orders), i128::from(leads));
    // Rounded in integers: a float would already be inexact at a half.
    let hundredths = (20_000 * orders + leads) / (2 * leads);
    hundredths as f64 / 100.0
}

async fn find_counters(
    org: &OrgId,
    months: &[NaiveDate],
    models: &PgPool,
) -> Result<Counters, sqlx::Error> {
    sqlx::query_as!(
        Counters,
        r#"SELECT (SELECT coalesce(trunc(sum(revenue)), 0)::text FROM revenue_months
                   WHERE org_id = $1) AS "revenue!",
                  ARRAY(SELECT coalesce(trunc(held.revenue), 0)::text
                        FROM unnest($2::date[]) WITH ORDINALITY AS asked (month, place)
                        LEFT JOIN revenue_months AS held
                               ON held.org_id = $1 AND held.month = asked.month
                        ORDER BY asked.place) AS "months!",
                  coalesce(sum(count) FILTER (WHERE kind = 'orders'), 0)::bigint AS "orders!",
                  coalesce(sum(count) FILTER (WHERE kind = 'leads'), 0)::bigint AS "leads!"
           FROM totals
           WHERE org_id = $1 AND kind IN ('orders', 'leads') AND parent = '' AND state = ''"#,
        org.as_str(),
        months,
    )
    .fetch_one(models)
    .await
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn day(year: i32, month: u32, day: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(year, month, day).unwrap()
    }

    #[test]
    fn the_trend_ends_with_the_present_month() {
        for (today, first, last) in [
            (day(2026, 11, 30), day(2025, 12, 1), day(2026, 11, 1)),
            (day(2024, 2, 29), day(2023, 3, 1), day(2024, 2, 1)),
            (day(2026, 12, 31), day(2026, 1, 1), day(2026, 12, 1)),
            (day(2026, 1, 1), day(2025, 2, 1), day(2026, 1, 1)),
        ] {
            let months = months_up_to(today);
            assert_eq!((months.len(), months[0], months[11]), (12, first, last));
            assert!(months.is_sorted());
        }
    }

    #[test]
    fn percentages_are_rounded_to_two_decimals() {
        for (orders, leads, rate) in [
            (0, 0, 0.0),
            (5, 0, 0.0),
            (0, 7, 0.0),
            (1, 3, 33.33),
            (2, 3, 66.67),
            (1, 8, 12.5),
            (1, 16, 6.25),
            (1, 32, 3.13),
            (201, 20_000, 1.01),
            (3, 2, 150.0),
            (1, 100_000, 0.0),
        ] {
            let found = percentage(orders, leads);
            assert!((found - rate).abs() < 1e-9, "{orders} of {leads}: {found}");
        }
    }

    proptest! {
        #[test]
        fn a_percentage_has_two_decimals_in_its_text(orders in 0..1_000_000_i64, leads in 1..1_000_000_i64) {
            let text = serde_json::to_string(&percentage(orders, leads)).unwrap();
            let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            prop_assert!(decimals <= 2, "{text}");
        }
    }

    #[test]
    fn sums_wider_than_an_integer_of_postgres_stay_whole() {
        let counters = Counters {
            revenue: "92233720368547758070".to_owned(),
            orders: 10,
            leads: 4,
            months: vec!["0".to_owned(), "92233720368547758070".to_owned()],
        };
        let months = [day(2026, 10, 1), day(2026, 11, 1)];
        let analytics = summarize(&months, &counters).unwrap();
        assert_eq!(
            serde_json::to_string(&analytics).unwrap(),
            "{\"totalRevenue\":92233720368547758070,\"totalOrders\":10,\"totalLeads\":4,\
             \"conversionRate\":250.0,\"monthlyRevenue\":[\
             {\"month\":\"2026-10\",\"revenue\":0},\
             {\"month\":\"2026-11\",\"revenue\":92233720368547758070}]}"
        );
    }
}
