//! Makes spans of queries, which sqlx reports when they have ended.

use std::time::Duration;

use opentelemetry::KeyValue;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, Filter};
use tracing_subscriber::registry::LookupSpan;

use crate::span::{ended_part, is_recorded};

const TARGET: &str = "sqlx::query";

/// Makes spans of the queries that are made within a span.
pub fn queries<S>() -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
{
    Queries.with_filter(Recorded)
}

struct Queries;

impl<S: Subscriber> Layer<S> for Queries {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut query = Query::default();
        event.record(&mut query);
        // The text and the parameters are not kept, except for what names the query.
        let text = if query.text.is_empty() {
            &query.start
        } else {
            &query.text
        };
        let (operation, table) = named(text);
        let name = match table {
            Some(table) => format!("{operation} {table}"),
            None => operation.to_owned(),
        };
        let attributes = [
            KeyValue::new("db.system.name", "postgresql"),
            KeyValue::new("db.operation.name", operation.to_owned()),
            KeyValue::new("db.response.returned_rows", query.rows),
        ];
        let collection = table.map(|table| KeyValue::new("db.collection.name", table.to_owned()));
        let took = Duration::try_from_secs_f64(query.seconds).unwrap_or_default();
        ended_part(name, took, attributes.into_iter().chain(collection));
    }
}

/// Only queries, and only if the current span is recorded.
struct Recorded;

impl<S> Filter<S> for Recorded {
    fn enabled(&self, of: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        of.target() == TARGET && is_recorded()
    }

    fn callsite_enabled(&self, of: &'static Metadata<'static>) -> Interest {
        if of.target() == TARGET {
            Interest::sometimes()
        } else {
            Interest::never()
        }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::DEBUG)
    }
}

/// What sqlx reports about a query.
#[derive(Default)]
struct Query {
    /// Its first words.
    start: String,
    /// The full text, if it has more words.
    text: String,
    rows: i64,
    seconds: f64,
}

impl Visit for Query {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "summary" => value.clone_into(&mut self.start),
            "db.statement" => value.clone_into(&mut self.text),
            _ => {}
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "rows_returned" {
            self.rows = i64::try_from(value).unwrap_or(i64::MAX);
        }
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        if field.name() == "elapsed_secs" {
            self.seconds = value;
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

/// Returns a statement's operation and its table.
fn named(statement: &str) -> (&'static str, Option<&str>) {
    let is = |word: &str, other: &str| word.eq_ignore_ascii_case(other);
    let mut words = statement.split_whitespace();
    let first = words.next().unwrap_or_default();
    let known = OPERATIONS.iter().find(|known| is(first, known));
    let operation = known.copied().unwrap_or("OTHER");
    let before = |word: &&str| {
        ["from", "into", "update", "join"]
            .iter()
            .any(|b| is(word, b))
    };
    let mut words = statement.split_whitespace();
    let mut table = None;
    while table.is_none() && words.any(|word| before(&word)) {
        table = words.next().and_then(name);
    }
    (operation, table)
}

/// The operations that spans are named after.
const OPERATIONS: &[&str] = &[
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "WITH",
    "COPY",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT",
    "SET",
    "NOTIFY",
    "LOCK",
    "ANALYZE",
    "DISCARD",
];

/// Returns the word if it can only be the name of a table: no value can look like one.
fn name(word: &str) -> Option<&str> {
    let end = word.find(|c: char| !(c.is_ascii_lowercase() || c == '_' || c == '.'));
    let name = &word[..end.unwrap_or(word.len())];
    let whole =
        end.is_none_or(|end| [',', ';', ')', '('].contains(&char::from(word.as_bytes()[end])));
    (whole && !name.is_empty() && !["lateral", "unnest", "select", "set"].contains(&name))
        .then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_named_after_what_it_does_and_the_table() {
        for (statement, operation, table) in [
            (
                "SELECT id FROM contacts WHERE org_id = $1",
                "SELECT",
                Some("contacts"),
            ),
            (
                "\n\n  insert into events (id) values ($1)",
                "INSERT",
                Some("events"),
            ),
            (
                "UPDATE projections SET position = $1",
                "UPDATE",
                Some("projections"),
            ),
            ("DELETE FROM deals", "DELETE", Some("deals")),
            (
                "SELECT * FROM unnest($1) AS u JOIN orders o ON true",
                "SELECT",
                Some("orders"),
            ),
            (
                "WITH one AS (SELECT 1 FROM leads) SELECT 1",
                "WITH",
                Some("leads"),
            ),
            ("COMMIT", "COMMIT", None),
            ("SELECT 1", "SELECT", None),
            ("ada@example.com", "OTHER", None),
            ("SELECT 1 FROM 'ada@example.com'", "SELECT", None),
            ("", "OTHER", None),
        ] {
            assert_eq!(named(statement), (operation, table), "{statement}");
        }
    }
}
