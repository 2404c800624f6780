//! Counts of the rows: totals, revenue by month, and records by creation time.

use std::collections::BTreeMap;

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use serde_json::{Value, json};

use super::Fold;

/// Tables that are counted as a whole.
const COUNTED: &[&str] = &[
    "companies",
    "deals",
    "contacts",
    "orders",
    "leads",
    "clients",
];

/// The columns of a list's owner and of its state, for tables counted by state.
const BY_STATE: &[(&str, &str, &str)] = &[
    ("orders", "", "status"),
    ("runs", "workflow_id", "state"),
    ("deliveries", "webhook_id", "status"),
];

/// The columns whose values are counted.
const BY_VALUE: &[(&str, &[&str])] = &[
    ("companies", &["city", "owner"]),
    ("deals", &["stage", "owner"]),
    ("contacts", &["city", "owner"]),
    ("leads", &["status"]),
    ("clients", &["city", "is_active"]),
];

/// The columns by which series are grouped.
const GROUPS: &[(&str, &[&str])] = &[
    ("orders", &["status", "plan"]),
    ("leads", &["status", "source"]),
    ("clients", &["city"]),
];

pub(super) fn add(fold: &mut Fold) {
    add_by_value(fold);
    add_groups(fold);
    let mut totals: BTreeMap<[String; 4], u64> = BTreeMap::new();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut count = |org: &Value, kind: &str, parent: String, state: String| {
        let key = [text(org), kind.to_owned(), parent, state];
        *totals.entry(key).or_default() += 1;
    };
    for kind in COUNTED {
        for row in fold.table(kind).values() {
            count(&row["org_id"], kind, String::new(), String::new());
        }
    }
    for (kind, parent, state) in BY_STATE {
        for row in fold.table(kind).values() {
            count(
                &row["org_id"],
                kind,
                text(&row[*parent]),
                text(&row[*state]),
            );
        }
    }
    add_by_time(fold);
    let mut months: BTreeMap<(String, String), i64> = BTreeMap::new();
    for row in fold.table("orders").values() {
        if brings_in(row) {
            let month = text(&row["created_at"]).chars().take(7).collect::<String>() + "-01";
            let sum = months.entry((text(&row["org_id"]), month)).or_default();
            *sum += row["amount"].as_i64().unwrap_or_default();
        }
    }
    for ([org, kind, parent, state], count) in totals {
        fold.put(
            "totals",
            json!({"org_id": org, "kind": kind, "parent": parent, "state": state, "count": count}),
        );
    }
    for ((org, month), revenue) in months.into_iter().filter(|(_, revenue)| *revenue != 0) {
        let row = json!({"org_id": org, "month": month, "revenue": revenue});
        fold.put("revenue_months", row);
    }
}

fn add_by_value(fold: &mut Fold) {
    let mut totals: BTreeMap<[String; 4], u64> = BTreeMap::new();
    for (kind, fields) in BY_VALUE {
        for row in fold.table(kind).values() {
            for field in *fields {
                let value = match &row[*field] {
                    Value::String(value) => value.to_lowercase().chars().take(100).collect(),
                    Value::Bool(value) => value.to_string(),
                    _ => String::new(),
                };
                if !value.is_empty() {
                    let org = row["org_id"].as_str().unwrap_or_default();
                    let key = [org, kind, field, &value].map(str::to_owned);
                    *totals.entry(key).or_default() += 1;
                }
            }
        }
    }
    for ([org, kind, field, value], count) in totals {
        fold.put(
            "field_totals",
            json!({"org_id": org, "kind": kind, "field": field, "value": value, "count": count}),
        );
    }
}

/// Counts orders and leads in each quarter of an hour and each day.
fn add_by_time(fold: &mut Fold) {
    for (kind, table) in [("orders", "orders_by_time"), ("leads", "leads_by_time")] {
        let mut counts: BTreeMap<(String, i64, DateTime<Utc>), (u64, i64)> = BTreeMap::new();
        for row in fold.table(kind).values() {
            let org = row["org_id"].as_str().unwrap_or_default();
            for (minutes, begins) in stretches(row) {
                let count = counts.entry((org.to_owned(), minutes, begins)).or_default();
                count.0 += 1;
                count.1 += brought_in(kind, row);
            }
        }
        for ((org, minutes, begins), (count, revenue)) in counts {
            let mut row =
                json!({"org_id": org, "minutes": minutes, "begins": begins, "count": count});
            if kind == "orders" {
                row["revenue"] = revenue.into();
            }
            fold.put(table, row);
        }
    }
}

/// The counted organization, kind, field and value, with the interval's length and start.
type Group = ([String; 4], i64, DateTime<Utc>);

/// Counts each value in each quarter of an hour and each day.
fn add_groups(fold: &mut Fold) {
    let mut counts: BTreeMap<Group, (u64, i64)> = BTreeMap::new();
    for (kind, fields) in GROUPS {
        for row in fold.table(kind).values() {
            let org = row["org_id"].as_str().unwrap_or_default();
            for field in *fields {
                let value = row[*field].as_str().unwrap_or_default();
                let value: String = value.chars().take(100).collect();
                let of = [org, kind, field, &value].map(str::to_owned);
                for (minutes, begins) in stretches(row) {
                    let count = counts.entry((of.clone(), minutes, begins)).or_default();
                    count.0 += 1;
                    count.1 += brought_in(kind, row);
                }
            }
        }
    }
    for (([org, kind, field, value], minutes, begins), (count, revenue)) in counts {
        fold.put(
            "values_by_time",
            json!({"org_id": org, "kind": kind, "field": field, "value": value,
                "minutes": minutes, "begins": begins, "count": count, "revenue": revenue}),
        );
    }
}

/// The quarter of an hour and the day of a row's creation: the length and start of each.
fn stretches(row: &Value) -> impl Iterator<Item = (i64, DateTime<Utc>)> + use<> {
    let at = row["created_at"].as_str().unwrap_or_default();
    let at = at.parse::<DateTime<Utc>>().ok();
    at.into_iter().flat_map(|at| {
        [15, 1_440].map(|minutes| {
            let begins = at.duration_trunc(TimeDelta::minutes(minutes));
            (minutes, begins.unwrap_or(at))
        })
    })
}

/// A row's contribution to the revenue.
fn brought_in(kind: &str, row: &Value) -> i64 {
    let amount = row["amount"].as_i64();
    let amount = amount.filter(|_| kind == "orders" && brings_in(row));
    amount.unwrap_or_default()
}

fn brings_in(order: &Value) -> bool {
    matches!(order["status"].as_str(), Some("ACTIVE" | "COMPLETED"))
}
