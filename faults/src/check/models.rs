//! Read models: each table equal to the fold, row by row.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::fold::{Named, TABLES, Table, key};
use super::{Findings, Fold, holds};

const ROWS: &str = "rows of the read models that equal the fold";
const DEAD_LETTERS: &str = "events that no projection put aside";

pub(crate) async fn check(database: &str, fold: &Fold, findings: &mut Findings) {
    let mut database = PgConnection::connect(database).await.expect("Postgres");
    for table in TABLES {
        match rows(&mut database, table).await {
            Ok(found) => compare(table.name, fold.table(table.name), &found, findings),
            Err(error) => findings.judge(ROWS, false, table.name, "its rows", error),
        }
    }
    let aside = all(&mut database, "dead_letters").await.unwrap_or_default();
    findings.judge(
        DEAD_LETTERS,
        aside.is_empty(),
        "dead letters",
        "none",
        json!(aside),
    );
}

async fn all(database: &mut PgConnection, table: &str) -> Result<Vec<Value>, sqlx::Error> {
    // Not jsonb, which cannot hold the U+0000 that a client's own JSON may.
    let query = format!("SELECT to_json(t)::text FROM {table} AS t");
    let rows: Vec<String> = sqlx::query_scalar(AssertSqlSafe(query))
        .fetch_all(database)
        .await?;
    let parsed = rows.iter().map(|row| serde_json::from_str(row));
    Ok(parsed.collect::<Result<_, _>>().unwrap_or_default())
}

async fn rows(database: &mut PgConnection, table: &Named) -> Result<Table, sqlx::Error> {
    let rows = all(database, table.name).await?;
    let mut found = BTreeMap::new();
    for mut row in rows {
        // Counters that returned to zero may stay.
        if table.name == "totals" && row["count"] == 0 {
            continue;
        }
        if table.name == "runs" {
            by_step(&mut row);
        }
        found.insert(key(&row, table.key), row);
    }
    Ok(found)
}

/// The steps that a run reached, by name, as in the fold.
fn by_step(run: &mut Value) {
    let steps = run["steps"].as_array().into_iter().flatten();
    let steps: serde_json::Map<_, _> = steps
        .map(|step| {
            (
                step["id"].as_str().unwrap_or_default().to_owned(),
                step.clone(),
            )
        })
        .collect();
    run["steps"] = Value::Object(steps);
}

fn compare(name: &str, expected: &Table, found: &Table, findings: &mut Findings) {
    for (key, row) in expected {
        let there = found.get(key);
        let right = there.is_some_and(|there| holds(there, row));
        let shown = || there.map_or_else(|| "no row".to_owned(), |there| differing(row, there));
        let found = if right { String::new() } else { shown() };
        findings.judge(ROWS, right, format!("{name} {key}"), row, found);
    }
    for (key, row) in found {
        if !expected.contains_key(key) {
            findings.judge(ROWS, false, format!("{name} {key}"), "no row", row);
        }
    }
}

/// The columns that differ.
fn differing(expected: &Value, found: &Value) -> String {
    let columns = expected.as_object().into_iter().flatten();
    let differ = columns.filter(|(name, value)| !holds(&found[name.as_str()], value));
    let shown = differ.map(|(name, _)| format!("{name}: {}", found[name.as_str()]));
    shown.collect::<Vec<_>>().join(", ")
}
