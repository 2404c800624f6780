//! The checker's own fold of the log, as simple as possible: rows by key, in maps.

mod counts;
mod rows;
mod runs;

use std::collections::BTreeMap;

use schemas::Log;
use serde_json::Value;

use super::{Fact, Facts};
pub(crate) use rows::snake;

/// A table's rows by key.
pub(crate) type Table = BTreeMap<String, Value>;

/// The expected contents of the read models.
#[derive(Default)]
pub(crate) struct Fold {
    tables: BTreeMap<&'static str, Table>,
}

impl Fold {
    pub(crate) fn of(facts: &Facts) -> Self {
        let mut fold = Self::default();
        for table in TABLES {
            fold.tables.insert(table.name, Table::new());
        }
        for log in [Log::Events, Log::Locations, Log::Deliveries] {
            let not_erased = |fact: &&Fact| !is_erased(facts, fact);
            for fact in facts.of(log).filter(not_erased) {
                fold.take(fact);
            }
        }
        counts::add(&mut fold);
        fold
    }

    fn take(&mut self, fact: &Fact) {
        rows::take(self, fact);
        runs::take(self, fact);
    }

    pub(crate) fn table(&self, name: &str) -> &Table {
        static EMPTY: Table = Table::new();
        self.tables.get(name).unwrap_or(&EMPTY)
    }

    fn rows(&mut self, name: &'static str) -> &mut Table {
        self.tables.entry(name).or_default()
    }

    /// Runs that have not ended.
    pub(crate) fn open_runs(&self) -> usize {
        let runs = self.table("runs").values();
        runs.filter(|run| run["ended_at"].is_null()).count()
    }
}

/// Whether it is a place or a call for help of a forgotten person: no row of it is left, whenever
/// it came.
fn is_erased(facts: &Facts, fact: &Fact) -> bool {
    let place = fact.kind.starts_with("place.") || fact.log == Log::Locations;
    let call = fact.kind == "sos.triggered";
    (place || call) && facts.is_of_the_forgotten(fact)
}

/// A table of the read models, and its key columns.
pub(crate) struct Named {
    pub(crate) name: &'static str,
    pub(crate) key: &'static [&'static str],
}

const fn named(name: &'static str, key: &'static [&'static str]) -> Named {
    Named { name, key }
}

/// Every table that is compared.
pub(crate) const TABLES: &[Named] = &[
    named("organizations", &["org_id"]),
    named("api_keys", &["org_id", "key_id"]),
    named("workflows", &["org_id", "workflow_id"]),
    named("runs", &["org_id", "run_id"]),
    named("webhooks", &["org_id", "webhook_id"]),
    named("deliveries", &["org_id", "delivery_id"]),
    named("companies", &["org_id", "id"]),
    named("deals", &["org_id", "id"]),
    named("contacts", &["org_id", "id"]),
    named("orders", &["org_id", "id"]),
    named("leads", &["org_id", "id"]),
    named("clients", &["org_id", "id"]),
    named("revenue_months", &["org_id", "month"]),
    named("deleted_companies", &["org_id", "id"]),
    named("deleted_deals", &["org_id", "id"]),
    named("deleted_contacts", &["org_id", "id"]),
    named("orders_by_time", &["org_id", "minutes", "begins"]),
    named("leads_by_time", &["org_id", "minutes", "begins"]),
    named("totals", &["org_id", "kind", "parent", "state"]),
    named("field_totals", &["org_id", "kind", "field", "value"]),
    named(
        "values_by_time",
        &["org_id", "field", "minutes", "begins", "kind", "value"],
    ),
    named("accounts", &["account_id"]),
    named("circles", &["circle_id"]),
    named("circle_members", &["circle_id", "account_id", "sequence"]),
    named("circle_places", &["circle_id", "place_id"]),
    named("sharing_pauses", &["account_id", "sequence"]),
    named("positions", &["account_id", "recorded_at"]),
    named("sos_calls", &["org_id", "sos_id"]),
    named("crossings", &["account_id", "sequence"]),
];

/// A row's key: its columns' values, times in one form.
pub(crate) fn key(row: &Value, columns: &[&str]) -> String {
    let parts = columns.iter().map(|column| match &row[*column] {
        Value::String(text) => match chrono::DateTime::parse_from_rfc3339(text) {
            Ok(time) => time.timestamp_micros().to_string(),
            Err(_) => text.clone(),
        },
        other => other.to_string(),
    });
    parts.collect::<Vec<_>>().join(" ")
}

impl Fold {
    /// Writes a row under its key.
    fn put(&mut self, name: &'static str, row: Value) {
        if let Some(table) = TABLES.iter().find(|table| table.name == name) {
            let key = key(&row, table.key);
            self.rows(name).insert(key, row);
        }
    }
}
