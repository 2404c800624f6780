//! The charts of the figures.

use std::fmt::Display;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use schemas::OrgId;
use service::HttpError;
use sqlx::PgPool;

use super::figures::{
    Begun, Brought, Counted, Figures, HOURS, LEADS, Sum, find_deliveries, find_orders, find_runs,
    find_sources, first_hour,
};
use crate::business::{Analytics, analytics_of};
use crate::exports::Column;
use crate::pages::amounts::{grouped, money};
use crate::pages::chart::{Bar, Chart, Shape};

impl Figures {
    /// Returns all charts, in the order of the page.
    pub(super) fn charts(&self) -> Vec<Chart> {
        vec![
            revenue(&self.analytics),
            orders(&self.analytics, &self.orders),
            leads(&self.analytics, &self.leads),
            runs(&self.runs, self.now),
            deliveries(&self.deliveries, self.now),
        ]
    }
}

/// Returns the chart of this name, reading only the figures that it shows; `None` if there is none.
pub(super) async fn find_chart(
    name: &str,
    org: &OrgId,
    now: DateTime<Utc>,
    models: &PgPool,
) -> Result<Option<Chart>, HttpError> {
    let since = first_hour(now);
    let analytics = async || analytics_of(org, now.date_naive(), models).await;
    Ok(Some(match name {
        "revenue" => revenue(&analytics().await?),
        "orders" => orders(&analytics().await?, &find_orders(org, models).await?),
        "leads" => leads(&analytics().await?, &find_sources(org, models).await?),
        "runs" => runs(&find_runs(org, since, models).await?, now),
        "deliveries" => deliveries(&find_deliveries(org, since, models).await?, now),
        _ => return Ok(None),
    }))
}

fn revenue(analytics: &Analytics) -> Chart {
    let bars = analytics.monthly_revenue.iter().map(|month| {
        let first = format!("{}-01", month.month).parse::<NaiveDate>();
        Bar {
            label: month.month.clone(),
            short: first.map_or_else(|_| month.month.clone(), |day| day.format("%b").to_string()),
            parts: vec![length(month.revenue) / 100.0],
            figure: String::new(),
            cells: vec![money(month.revenue).replace(',', "")],
        }
    });
    let sum = analytics.monthly_revenue.iter().map(|month| month.revenue);
    Chart {
        name: "revenue",
        title: "Revenue by month",
        summary: format!(
            "{} in the last twelve months, from active and completed orders.",
            money(sum.sum::<i128>())
        ),
        empty: "No revenue in the last twelve months. It is counted from orders that are active or completed.",
        shape: Shape::Standing,
        parts: &["Revenue"],
        columns: const { &[Column::text("month", 8), Column::number("revenue", 12)] },
        bars: bars.collect(),
    }
}

fn orders(analytics: &Analytics, orders: &[Counted]) -> Chart {
    const STATUSES: [(&str, &str); 4] = [
        ("PAYMENT_PENDING", "Payment pending"),
        ("ACTIVE", "Active"),
        ("COMPLETED", "Completed"),
        ("CANCELLED", "Cancelled"),
    ];
    let bars = STATUSES.iter().map(|(state, name)| {
        let counted = orders.iter().find(|counted| counted.state == *state);
        let count = counted.map_or(0, |counted| counted.count);
        Bar {
            label: (*name).to_owned(),
            short: (*name).to_owned(),
            parts: vec![length(count)],
            figure: count.to_string(),
            cells: vec![count.to_string()],
        }
    });
    Chart {
        name: "orders",
        title: "Orders by status",
        summary: format!("{} in all.", counted(analytics.total_orders, "order")),
        empty: "No orders yet. Import them as CSV, or write them through the API.",
        shape: Shape::Lying,
        parts: &["Orders"],
        columns: const { &[Column::text("status", 16), Column::integer("orders", 8)] },
        bars: bars.collect(),
    }
}

fn leads(analytics: &Analytics, leads: &[Brought]) -> Chart {
    let bars = leads.iter().map(|source| {
        let rate = percentage(source.converted, source.leads);
        let name = source.source.as_deref().unwrap_or("No source");
        Bar {
            label: name.to_owned(),
            short: name.to_owned(),
            parts: vec![
                length(source.converted),
                length(source.leads - source.converted),
            ],
            figure: format!("{} · {rate} %", source.leads),
            cells: vec![source.leads.to_string(), source.converted.to_string(), rate],
        }
    });
    let which = if analytics.total_leads > LEADS {
        format!("The newest {LEADS} of {} leads.", analytics.total_leads)
    } else {
        format!("{} in all.", counted(analytics.total_leads, "lead"))
    };
    Chart {
        name: "leads",
        title: "Leads by source",
        summary: format!(
            "{which} A lead counts as converted once its status is qualified, converted or won."
        ),
        empty: "No leads yet. Import them as CSV, or write them through the API.",
        shape: Shape::Lying,
        parts: &["Converted", "Other leads"],
        columns: const {
            &[
                Column::text("source", 20),
                Column::integer("leads", 8),
                Column::integer("converted", 8),
                Column::number("conversionRate", 8),
            ]
        },
        bars: bars.collect(),
    }
}

fn runs(runs: &[Begun], now: DateTime<Utc>) -> Chart {
    Chart {
        name: "runs",
        title: "Workflow runs by hour",
        summary: summary(runs, "run"),
        empty: "No runs in the last 24 hours.",
        shape: Shape::Standing,
        parts: &["Runs", "Failed"],
        columns: const {
            &[
                Column::text("hour", 17),
                Column::integer("runs", 8),
                Column::integer("failed", 8),
            ]
        },
        bars: by_hour(runs, now),
    }
}

fn deliveries(deliveries: &[Begun], now: DateTime<Utc>) -> Chart {
    Chart {
        name: "deliveries",
        title: "Webhook deliveries by hour",
        summary: summary(deliveries, "deliver"),
        empty: "No webhook deliveries in the last 24 hours.",
        shape: Shape::Standing,
        parts: &["Deliveries", "Failed"],
        columns: const {
            &[
                Column::text("hour", 17),
                Column::integer("deliveries", 8),
                Column::integer("failed", 8),
            ]
        },
        bars: by_hour(deliveries, now),
    }
}

/// Returns a bar for each of the last hours, including empty ones.
fn by_hour(hours: &[Begun], now: DateTime<Utc>) -> Vec<Bar> {
    let bars = (0..HOURS).map(|nth| {
        let hour = first_hour(now) + TimeDelta::hours(nth);
        let found = hours.iter().find(|found| found.hour == hour);
        let (count, failed) = found.map_or((0, 0), |found| (found.count, found.failed));
        let short = if nth % 4 == 3 {
            hour.format("%H:%M").to_string()
        } else {
            String::new()
        };
        Bar {
            label: hour.format("%Y-%m-%d %H:%M").to_string(),
            short,
            parts: vec![length((count - failed).max(0)), length(failed)],
            figure: String::new(),
            cells: vec![count.to_string(), failed.to_string()],
        }
    });
    bars.collect()
}

fn summary(hours: &[Begun], what: &str) -> String {
    let (all, failed) = (Sum::of_all(hours), Sum::of_failed(hours));
    let name = match (what, all.0) {
        ("deliver", 1) => "delivery",
        ("deliver", _) => "deliveries",
        (_, 1) => "run",
        _ => "runs",
    };
    let begin = if all.is_cut() { "At least " } else { "" };
    let least = if failed.is_cut() { "at least " } else { "" };
    let (all, failed) = (all.0, failed.0);
    format!(
        "{begin}{all} {name} in the last 24 hours, {least}{failed} of them failed. Hours are in UTC."
    )
}

fn counted(count: i64, what: &str) -> String {
    if count == 1 {
        format!("1 {what}")
    } else {
        format!("{} {what}s", grouped(count))
    }
}

/// Returns a percentage with one decimal.
fn percentage(part: i64, whole: i64) -> String {
    let thousandths =
        (2_000 * i128::from(part) + i128::from(whole)) / (2 * i128::from(whole.max(1)));
    format!("{}.{}", thousandths / 10, thousandths % 10)
}

/// Converts a count to a length on a screen.
fn length(count: impl Display) -> f64 {
    count.to_string().parse().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_without_anything_have_a_bar_too() {
        let now: DateTime<Utc> = "2026-11-23T04:20:00Z".parse().unwrap();
        let hour = |hour: &str, count, failed| Begun {
            hour: hour.parse().unwrap(),
            count,
            failed,
        };
        let hours = [
            hour("2026-11-23T04:00:00Z", 7, 2),
            hour("2026-11-22T05:00:00Z", 1, 1),
        ];
        let bars = by_hour(&hours, now);
        assert_eq!(bars.len(), 24);
        assert_eq!(
            (bars[0].label.as_str(), bars[0].cells.join(" ")),
            ("2026-11-22 05:00", "1 1".to_owned())
        );
        assert_eq!(bars[23].cells.join(" "), "7 2");
        assert_eq!(bars[23].parts, [5.0, 2.0]);
        assert_eq!(bars[1].parts, [0.0, 0.0]);
    }

    #[test]
    fn a_sum_says_of_itself_whether_it_was_cut() {
        let day = |count, failed| {
            let hour = "2026-11-23T04:00:00Z".parse().unwrap();
            let begun = Begun {
                hour,
                count,
                failed,
            };
            summary(&[begun], "deliver")
        };
        for (count, failed, text) in [
            (1, 0, "1 delivery in the last 24 hours, 0 of them failed. "),
            (
                99_999,
                7,
                "99999 deliveries in the last 24 hours, 7 of them failed. ",
            ),
            (
                100_000,
                99_999,
                "At least 100000 deliveries in the last 24 hours, 99999 of them failed. ",
            ),
            (
                100_000,
                100_000,
                "At least 100000 deliveries in the last 24 hours, at least 100000 of them failed. ",
            ),
        ] {
            assert_eq!(day(count, failed), format!("{text}Hours are in UTC."));
        }
    }

    #[test]
    fn shares_are_rounded_to_one_decimal() {
        for (part, whole, text) in [
            (0, 0, "0.0"),
            (1, 3, "33.3"),
            (2, 3, "66.7"),
            (5, 5, "100.0"),
        ] {
            assert_eq!(percentage(part, whole), text);
        }
    }
}
