//! Exports against the fold: every row, in order.

use serde_json::Value;

use super::{Evidence, Findings};
use hostile::Dice;

const EXPORTS: &str = "rows of exports that equal the fold";

/// Columns that are compared: as the file and as the table name them.
const COLUMNS: &[(&str, &[(&str, &str)])] = &[
    (
        "companies",
        &[
            ("id", "id"),
            ("name", "name"),
            ("domain", "domain"),
            ("city", "city"),
        ],
    ),
    (
        "deals",
        &[("id", "id"), ("title", "title"), ("currency", "currency")],
    ),
    (
        "contacts",
        &[
            ("id", "id"),
            ("lastName", "last_name"),
            ("email", "email"),
            ("phone", "phone"),
        ],
    ),
];

pub(super) async fn check(evidence: &Evidence<'_>, findings: &mut Findings) {
    let mut dice = Dice::new(0);
    for org in &evidence.world.orgs {
        for (kind, columns) in COLUMNS {
            let path = format!("/api/export/{kind}?format=csv");
            let answer = evidence.client.read(&mut dice, &org.key, &path, None).await;
            let Some(answer) = answer.filter(crate::client::Answer::is_success) else {
                findings.judge(EXPORTS, false, &path, "a file", "none");
                continue;
            };
            let expected = expected(evidence, &org.id, kind, columns);
            let found = rows(&answer.body, columns);
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
fn expected(
    evidence: &Evidence<'_>,
    org: &str,
    kind: &str,
    columns: &[(&str, &str)],
) -> Vec<Vec<String>> {
    let rows = evidence.fold.table(kind).values();
    let mut rows: Vec<&Value> = rows.filter(|row| row["org_id"] == org).collect();
    let time = |row: &Value| {
        let text = row["created_at"].as_str().unwrap_or_default();
        chrono::DateTime::parse_from_rfc3339(text).ok()
    };
    let id = |row: &Value| row["id"].as_str().unwrap_or_default().to_owned();
    rows.sort_by(|one, other| time(other).cmp(&time(one)).then(id(one).cmp(&id(other))));
    let cell = |row: &Value, column: &str| row[column].as_str().unwrap_or_default().to_owned();
    let line = |row: &Value| {
        columns
            .iter()
            .map(|(_, column)| cell(row, column))
            .collect()
    };
    rows.into_iter().map(line).collect()
}

fn rows(file: &[u8], columns: &[(&str, &str)]) -> Vec<Vec<String>> {
    let mut reader = csv::Reader::from_reader(file);
    let header = reader.headers().cloned().unwrap_or_default();
    let place = |name: &str| header.iter().position(|column| column == name);
    let places: Vec<_> = columns.iter().map(|(name, _)| place(name)).collect();
    let line = |row: csv::StringRecord| {
        let cells = places
            .iter()
            .map(|place| place.and_then(|place| row.get(place)));
        cells
            .map(|cell| cell.unwrap_or_default().to_owned())
            .collect()
    };
    reader.records().flatten().map(line).collect()
}
