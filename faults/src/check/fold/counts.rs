//! What is counted of the rows: totals, and revenue by month.

use std::collections::BTreeMap;

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

/// The column that a list belongs by, and the one of its state, for tables counted by state.
const BY_STATE: &[(&str, &str, &str)] = &[
    ("orders", "", "status"),
    ("runs", "workflow_id", "state"),
    ("deliveries", "webhook_id", "status"),
];

pub(super) fn add(fold: &mut Fold) {
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
    let mut months: BTreeMap<(String, String), i64> = BTreeMap::new();
    for row in fold.table("orders").values() {
        if matches!(row["status"].as_str(), Some("ACTIVE" | "COMPLETED")) {
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
