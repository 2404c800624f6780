//! What the figures look like.

use std::fmt::Display;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::figures::{Begun, COUNTED, Figures, HOURS, LEADS, first_hour, money};
use crate::exports::Column;
use crate::pages::chart::{Bar, Chart, Shape};

impl Figures {
    /// All charts, in the order of the page.
    pub(super) fn charts(&self) -> Vec<Chart> {
        vec![
            self.revenue(),
            self.orders(),
            self.leads(),
            self.runs(),
            self.deliveries(),
        ]
    }

    fn revenue(&self) -> Chart {
        let bars = self.analytics.monthly_revenue.iter().map(|month| {
            let first = format!("{}-01", month.month).parse::<NaiveDate>();
            Bar {
                label: month.month.clone(),
                short: first
                    .map_or_else(|_| month.month.clone(), |day| day.format("%b").to_string()),
                parts: vec![length(month.revenue) / 100.0],
                figure: String::new(),
                cells: vec![money(month.revenue).replace(',', "")],
            }
        });
        let sum = self
            .analytics
            .monthly_revenue
            .iter()
            .map(|month| month.revenue);
        Chart {
            name: "revenue",
            title: "Revenue by month",
            summary: format!(
                "{} in the last twelve months, from active and completed orders.",
                money(sum.sum())
            ),
            empty: "No revenue in the last twelve months. It is counted from orders that are active or completed.",
            shape: Shape::Standing,
            parts: &["Revenue"],
            columns: const { &[Column::text("month", 8), Column::number("revenue", 12)] },
            bars: bars.collect(),
        }
    }

    fn orders(&self) -> Chart {
        const STATUSES: [(&str, &str); 4] = [
            ("PAYMENT_PENDING", "Payment pending"),
            ("ACTIVE", "Active"),
            ("COMPLETED", "Completed"),
            ("CANCELLED", "Cancelled"),
        ];
        let bars = STATUSES.iter().map(|(state, name)| {
            let counted = self.orders.iter().find(|counted| counted.state == *state);
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
            summary: format!("{} in all.", counted(self.analytics.total_orders, "order")),
            empty: "No orders yet. Import them as CSV, or write them through the API.",
            shape: Shape::Lying,
            parts: &["Orders"],
            columns: const { &[Column::text("status", 16), Column::integer("orders", 8)] },
            bars: bars.collect(),
        }
    }

    fn leads(&self) -> Chart {
        let bars = self.leads.iter().map(|source| {
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
        let which = if self.analytics.total_leads > LEADS {
            format!(
                "The newest {LEADS} of {} leads.",
                self.analytics.total_leads
            )
        } else {
            format!("{} in all.", counted(self.analytics.total_leads, "lead"))
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

    fn runs(&self) -> Chart {
        Chart {
            name: "runs",
            title: "Workflow runs by hour",
            summary: told(&self.runs, "run"),
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
            bars: by_hour(&self.runs, self.now),
        }
    }

    fn deliveries(&self) -> Chart {
        Chart {
            name: "deliveries",
            title: "Webhook deliveries by hour",
            summary: told(&self.deliveries, "deliver"),
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
            bars: by_hour(&self.deliveries, self.now),
        }
    }
}

/// A bar for each of the last hours, those without anything included.
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

fn told(hours: &[Begun], what: &str) -> String {
    let all: i64 = hours.iter().map(|hour| hour.count).sum();
    let failed: i64 = hours.iter().map(|hour| hour.failed).sum();
    let name = match (what, all) {
        ("deliver", 1) => "delivery",
        ("deliver", _) => "deliveries",
        (_, 1) => "run",
        _ => "runs",
    };
    let cut = if all >= COUNTED { "At least " } else { "" };
    format!("{cut}{all} {name} in the last 24 hours, {failed} of them failed. Hours are in UTC.")
}

fn counted(count: i64, what: &str) -> String {
    if count == 1 {
        format!("1 {what}")
    } else {
        format!("{count} {what}s")
    }
}

/// How many of a hundred, with one decimal.
fn percentage(part: i64, whole: i64) -> String {
    let thousandths =
        (2_000 * i128::from(part) + i128::from(whole)) / (2 * i128::from(whole.max(1)));
    format!("{}.{}", thousandths / 10, thousandths % 10)
}

/// Something counted as a length on a screen.
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
