//! Exports against the fold: every row, in order.

use serde_json::Value;

use super::fold::snake;
use super::{Evidence, Findings};
use crate::load::exports::{EXPORTED, table};
use crate::notes::Table;
use hostile::Dice;

const EXPORTS: &str = "rows of exports that equal the fold";

pub(super) async fn check(evidence: &Evidence<'_>, findings: &mut Findings) {
    let mut dice = Dice::new(0);
    for org in &evidence.world.orgs {
        for (kind, columns) in EXPORTED {
            let path = format!("/api/export/{kind}?format=csv");
            let answer = evidence.client.read(&mut dice, &org.key, &path, None).await;
            let Some(answer) = answer.filter(crate::client::Answer::is_success) else {
                findings.judge(EXPORTS, false, &path, "a file", "none");
                continue;
            };
            let expected = expected(evidence, &org.id, kind, columns);
            let found = table(&answer.body, columns);
            let what = format!("{path} of {}", org.id);
            findings.judge(
                EXPORTS,
                expected.len() == found.len(),
                &what,
                expected.len(),
                found.len(),
            );
            for (expected, found) in expected.iter().zip(&found) {
                let right = expected == found;
                findings.judge(EXPORTS, right, &what, expected.join(","), found.join(","));
            }
        }
    }
}

/// Newest first, then by id.
fn expected(evidence: &Evidence<'_>, org: &str, kind: &str, columns: &[&str]) -> Table {
    let rows = evidence.fold.table(kind).values();
    let mut rows: Vec<&Value> = rows.filter(|row| row["org_id"] == org).collect();
    let time = |row: &Value| {
        let text = row["created_at"].as_str().unwrap_or_default();
        chrono::DateTime::parse_from_rfc3339(text).ok()
    };
    let id = |row: &Value| row["id"].as_str().unwrap_or_default().to_owned();
    rows.sort_by(|one, other| time(other).cmp(&time(one)).then(id(one).cmp(&id(other))));
    let cell = |row: &Value, column: &str| {
        let cell = row[snake(column)].as_str();
        cell.unwrap_or_default().to_owned()
    };
    let line = |row: &Value| columns.iter().map(|column| cell(row, column)).collect();
    rows.into_iter().map(line).collect()
}
