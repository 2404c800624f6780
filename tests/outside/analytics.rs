//! `GET /api/v1/analytics` and the lists' totals against the expected sums.

use std::collections::BTreeMap;

use chrono::{
    DateTime, Datelike as _, Days, Duration, Months, NaiveDate, SecondsFormat, TimeZone as _, Utc,
};
use chrono_tz::Tz;
use harness::Organization;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::exports::{position_of, write_of};
use crate::system;

const STATUSES: [&str; 4] = ["PAYMENT_PENDING", "ACTIVE", "COMPLETED", "CANCELLED"];

/// Names of plans, sources and cities.
const NAMES: [Option<&str>; 4] = [None, Some("Berlin"), Some("berlin"), Some("Łódź")];

/// A change to an order, a lead or a client; `name` is one of [`NAMES`].
#[derive(Clone, Debug)]
enum Step {
    Order {
        id: u8,
        status: usize,
        amount: i64,
        at: DateTime<Utc>,
        name: usize,
    },
    NoOrder(u8),
    Lead {
        id: u8,
        at: DateTime<Utc>,
        name: usize,
    },
    NoLead(u8),
    Client {
        id: u8,
        at: DateTime<Utc>,
        name: usize,
    },
    NoClient(u8),
}

/// Times in the last fourteen months, mostly at the borders of months.
fn moment() -> impl Strategy<Value = DateTime<Utc>> {
    let month = (0..14_u32).prop_map(|back| {
        let first = Utc::now().date_naive().with_day(1).unwrap() - Months::new(back);
        Utc.from_utc_datetime(&first.and_hms_opt(0, 0, 0).unwrap())
    });
    let off = prop_oneof![
        Just(Duration::zero()),
        Just(Duration::microseconds(-1)),
        Just(Duration::seconds(1)),
        (0..27_i64).prop_map(Duration::days),
    ];
    (month, off).prop_map(|(month, off)| month + off)
}

fn step() -> impl Strategy<Value = Step> {
    let amount = prop_oneof![0..100_000_i64, Just(0), Just(9_000_000_000_000_000)];
    let name = || 0..NAMES.len();
    let order = (0..40_u8, 0..4_usize, amount, moment(), name());
    let other = || (0..40_u8, moment(), name());
    prop_oneof![
        6 => order.prop_map(|(id, status, amount, at, name)| Step::Order {
            id,
            status,
            amount,
            at,
            name,
        }),
        2 => (0..40_u8).prop_map(Step::NoOrder),
        3 => other().prop_map(|(id, at, name)| Step::Lead { id, at, name }),
        1 => (0..40_u8).prop_map(Step::NoLead),
        2 => other().prop_map(|(id, at, name)| Step::Client { id, at, name }),
        1 => (0..40_u8).prop_map(Step::NoClient),
    ]
}

/// Sums of revenue, orders, leads and clients.
type Sums = [i64; 4];

/// The expected orders, leads and clients.
#[derive(Default)]
struct Model {
    orders: BTreeMap<u8, (usize, i64, DateTime<Utc>, usize)>,
    leads: BTreeMap<u8, (DateTime<Utc>, usize)>,
    clients: BTreeMap<u8, (DateTime<Utc>, usize)>,
}

impl Model {
    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Order {
                id,
                status,
                amount,
                at,
                name,
            } => {
                self.orders.insert(id, (status, amount, at, name));
            }
            Step::NoOrder(id) => _ = self.orders.remove(&id),
            Step::Lead { id, at, name } => _ = self.leads.insert(id, (at, name)),
            Step::NoLead(id) => _ = self.leads.remove(&id),
            Step::Client { id, at, name } => _ = self.clients.insert(id, (at, name)),
            Step::NoClient(id) => _ = self.clients.remove(&id),
        }
    }

    /// All records that have a field: creation time, value and contribution to the sums.
    fn of_field(&self, field: &str) -> Vec<(DateTime<Utc>, Option<&'static str>, Sums)> {
        let mut all = Vec::new();
        for (status, amount, at, name) in self.orders.values() {
            let is_earned = matches!(STATUSES[*status], "ACTIVE" | "COMPLETED");
            let sums = [if is_earned { *amount } else { 0 }, 1, 0, 0];
            match field {
                "status" => all.push((*at, Some(STATUSES[*status]), sums)),
                "plan" => all.push((*at, NAMES[*name], sums)),
                _ => {}
            }
        }
        for (at, name) in self.leads.values() {
            match field {
                "status" => all.push((*at, None, [0, 0, 1, 0])),
                "source" => all.push((*at, NAMES[*name], [0, 0, 1, 0])),
                _ => {}
            }
        }
        let clients = self.clients.values().filter(|_| field == "city");
        all.extend(clients.map(|(at, name)| (*at, NAMES[*name], [0, 0, 0, 1])));
        all
    }

    /// The sums for the days of a zone, by the first day of each step, and per step by the values
    /// of a field.
    fn series(
        &self,
        (from, to): (NaiveDate, NaiveDate),
        by: &str,
        zone: Tz,
        field: Option<&str>,
    ) -> Value {
        let step_of = |day: NaiveDate| match by {
            "day" => day,
            "week" => day.week(chrono::Weekday::Mon).first_day().max(from),
            _ => day.with_day(1).unwrap().max(from),
        };
        let step_at = |at: &DateTime<Utc>| {
            let day = at.with_timezone(&zone).date_naive();
            (from <= day && day <= to).then(|| step_of(day))
        };
        let add = |sums: &mut Sums, more: Sums| {
            for (sum, more) in sums.iter_mut().zip(more) {
                *sum += more;
            }
        };
        let mut steps: BTreeMap<NaiveDate, Sums> = BTreeMap::new();
        for day in from.iter_days().take_while(|day| *day <= to) {
            steps.entry(step_of(day)).or_default();
        }
        for (at, _, sums) in [self.of_field("plan"), self.of_field("source")].concat() {
            if let Some(step) = step_at(&at).and_then(|step| steps.get_mut(&step)) {
                add(step, sums);
            }
        }
        let mut groups: BTreeMap<(NaiveDate, bool, Option<&str>), Sums> = BTreeMap::new();
        for (at, value, sums) in field.map(|field| self.of_field(field)).unwrap_or_default() {
            if let Some(step) = step_at(&at) {
                let group = groups.entry((step, value.is_none(), value));
                add(group.or_default(), sums);
            }
        }
        let steps = steps
            .into_iter()
            .map(|(start, [revenue, orders, leads, _])| {
                let mut step =
                    json!({"start": start, "revenue": revenue, "orders": orders, "leads": leads});
                if field.is_some() {
                    let groups = groups.iter().filter(|((step, ..), _)| *step == start);
                    let groups = groups.map(|((.., value), [revenue, orders, leads, clients])| {
                        json!({"value": value, "revenue": revenue, "orders": orders, "leads": leads,
                        "clients": clients})
                    });
                    step["groups"] = groups.collect();
                }
                step
            });
        steps.collect()
    }

    fn revenue(&self, month: Option<NaiveDate>) -> i64 {
        let earned = self.orders.values().filter(|(status, _, at, _)| {
            let on = at.date_naive().with_day(1);
            matches!(STATUSES[*status], "ACTIVE" | "COMPLETED")
                && month.is_none_or(|m| on == Some(m))
        });
        earned.map(|(_, amount, ..)| amount).sum()
    }

    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn summary(&self, today: NaiveDate) -> Value {
        let (orders, leads) = (self.orders.len(), self.leads.len());
        let rate = match leads {
            0 => 0.0,
            _ => (orders as f64 * 10_000.0 / leads as f64).round() / 100.0,
        };
        let months = (0..12_u32).rev().map(|back| {
            let month = today.with_day(1).unwrap() - Months::new(back);
            let revenue = self.revenue(Some(month));
            json!({"month": month.format("%Y-%m").to_string(), "revenue": revenue})
        });
        json!({"totalRevenue": self.revenue(None), "totalOrders": orders, "totalLeads": leads,
            "conversionRate": rate, "monthlyRevenue": months.collect::<Vec<_>>()})
    }
}

async fn carry_out(org: &Organization<'_>, step: &Step) {
    let time = |at: &DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Micros, true);
    let (record, fields) = match step {
        Step::Order {
            id,
            status,
            amount,
            at,
            name,
        } => {
            let order = json!({"orderNumber": "n", "status": STATUSES[*status], "amount": amount,
                "createdAt": time(at), "plan": NAMES[*name]});
            (format!("orders/o{id}"), Some(order))
        }
        Step::NoOrder(id) => (format!("orders/o{id}"), None),
        Step::Lead { id, at, name } => {
            let lead = json!({"name": "n", "createdAt": time(at), "source": NAMES[*name]});
            (format!("leads/l{id}"), Some(lead))
        }
        Step::NoLead(id) => (format!("leads/l{id}"), None),
        Step::Client { id, at, name } => {
            let client = json!({"name": "n", "createdAt": time(at), "city": NAMES[*name]});
            (format!("clients/c{id}"), Some(client))
        }
        Step::NoClient(id) => (format!("clients/c{id}"), None),
    };
    let path = format!("/api/v1/records/{record}");
    let answer = match fields {
        Some(fields) => org.admin.put(&path, &fields).await,
        None => org.admin.delete(&path).await,
    };
    assert!(
        answer.status.is_success() || answer.status == 404,
        "{}",
        answer.text()
    );
}

async fn compare(org: &Organization<'_>, model: &Model) {
    position_of("orders", org).await;
    position_of("leads", org).await;
    let position = position_of("clients", org).await;
    let client = org
        .client(&["read:orders", "read:leads", "read:analytics"])
        .await;
    let before = Utc::now().date_naive();
    let summary = client.get_at("/api/v1/analytics", &position).await.ok(200);
    let after = Utc::now().date_naive();
    let expected = [model.summary(before), model.summary(after)];
    assert!(
        expected.contains(&summary),
        "{summary} is not {}",
        expected[0]
    );
    let today = Utc::now().date_naive();
    for (by, zone, days, field) in [
        ("day", Tz::UTC, 400, None),
        ("day", Tz::UTC, 400, Some("status")),
        ("day", Tz::Asia__Kathmandu, 430, Some("plan")),
        ("week", Tz::America__Havana, 425, Some("source")),
        ("month", Tz::Australia__Lord_Howe, 500, None),
        ("month", Tz::Europe__Berlin, 61, Some("city")),
        ("month", Tz::Asia__Kolkata, 430, Some("city")),
    ] {
        let from = today - Days::new(days);
        let mut path = format!("/api/v1/analytics?from={from}&to={today}&by={by}&timezone={zone}");
        if let Some(field) = field {
            path = format!("{path}&groupBy={field}");
        }
        let answer = client.get_at(&path, &position).await.ok(200);
        let expected = model.series((from, today), by, zone, field);
        assert_eq!(answer["series"], expected, "{path}");
    }
    for (nth, status) in STATUSES.iter().enumerate() {
        let path = format!("/api/v1/orders?limit=100&status={status}");
        let list = client.get_at(&path, &position).await.ok(200);
        let count = model.orders.values().filter(|order| order.0 == nth).count();
        let listed = list["data"].as_array().unwrap().len();
        assert_eq!((&list["total"], listed), (&json!(count), count), "{status}");
    }
    for (list, count) in [("orders", model.orders.len()), ("leads", model.leads.len())] {
        let list = client
            .get_at(&format!("/api/v1/{list}?limit=1"), &position)
            .await
            .ok(200);
        assert_eq!(list["total"], count);
    }
}

#[tokio::test]
async fn totals_and_trend_add_up_whatever_is_done() {
    let mut runner = TestRunner::default();
    let strategy = prop::collection::vec(step(), 70..100);
    for _ in 0..4 {
        let org = system().await.organization().await;
        let steps = strategy.new_tree(&mut runner).expect("steps").current();
        let mut model = Model::default();
        for (nth, step) in steps.iter().enumerate() {
            carry_out(&org, step).await;
            model.apply(step);
            if nth == steps.len() / 2 {
                compare(&org, &model).await;
            }
        }
        compare(&org, &model).await;
    }
}

#[tokio::test]
async fn without_records_all_is_nothing() {
    let org = system().await.organization().await;
    let client = org.client(&["read:analytics"]).await;
    let before = Utc::now().date_naive();
    let summary = client.get("/api/v1/analytics").await.ok(200);
    let expected = [before, Utc::now().date_naive()].map(|day| Model::default().summary(day));
    assert!(expected.contains(&summary), "{summary}");
    // Orders without leads convert nothing.
    let order = json!({"id": "o", "orderNumber": "n", "status": "ACTIVE", "amount": 5,
        "createdAt": "2000-01-01T00:00:00Z"});
    let position = write_of("orders", &org, &[order]).await;
    let summary = client.get_at("/api/v1/analytics", &position).await.ok(200);
    assert_eq!(summary["totalRevenue"], 5);
    assert_eq!(summary["conversionRate"].as_f64(), Some(0.0));
    let trend = summary["monthlyRevenue"].as_array().unwrap();
    assert!(trend.iter().all(|month| month["revenue"] == 0), "long ago");
}

#[tokio::test]
async fn a_span_that_makes_no_sense_is_refused_by_name() {
    let org = system().await.organization().await;
    let client = org.client(&["read:analytics"]).await;
    for (query, word) in [
        ("from=2026-01-01", "to: is missing"),
        ("to=2026-01-01", "from: is missing"),
        ("by=day", "from: is missing"),
        ("timezone=UTC", "from: is missing"),
        ("groupBy=city", "from: is missing"),
        (
            "from=2026-01-01&to=2026-01-02&groupBy=colour",
            "groupBy: must be status, plan, source or city",
        ),
        ("from=2026-01-02&to=2026-01-01", "to: must not be before"),
        ("from=2026-02-30&to=2026-03-01", "from: must be a date"),
        ("from=yesterday&to=2026-03-01", "from: must be a date"),
        (
            "from=1900-01-01&to=2026-03-01",
            "from: must be a date from 1980",
        ),
        ("from=2020-01-01&to=2026-03-01", "1100 steps"),
        ("from=2026-01-01&to=2026-03-01&by=hour", "by: must be"),
        (
            "from=2026-01-01&to=2026-03-01&timezone=Mars",
            "timezone: must be",
        ),
        (
            "from=2026-01-01&from=2026-01-01&to=2026-03-01",
            "more than once",
        ),
    ] {
        let answer = client.get(&format!("/api/v1/analytics?{query}")).await;
        assert_eq!(answer.status, 400, "{query}");
        assert!(answer.text().contains(word), "{query}: {}", answer.text());
    }
    let whole = "/api/v1/analytics?from=2026-01-30&to=2026-02-02";
    let series = client.get(whole).await.ok(200)["series"].clone();
    let starts = series.as_array().unwrap().iter().map(|step| &step["start"]);
    let days = ["2026-01-30", "2026-01-31", "2026-02-01", "2026-02-02"];
    assert!(starts.eq(days), "{series}");
}
