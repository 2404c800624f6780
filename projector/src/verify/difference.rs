//! A row that differs, in words for an operator: they contain no value that could be personal.

use event_log::EventLog;

/// Columns whose values anyone may read.
const PLAIN: [&str; 5] = ["status", "state", "kind", "projection", "event_type"];

/// A column of a table that is compared.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    /// Its type, as Postgres names it.
    pub(super) kind: String,
    pub(super) is_key: bool,
}

/// A row that is not the same on both sides, or missing on one of them.
pub(super) struct Difference<'a> {
    pub(super) table: &'a str,
    pub(super) columns: &'a [Column],
    pub(super) table_says: Option<Vec<Option<String>>>,
    pub(super) log_says: Option<Vec<Option<String>>>,
}

/// Describes differences in words.
pub(super) struct Words<'a>(&'a EventLog);

impl<'a> Words<'a> {
    pub(super) fn new(log: &'a EventLog) -> Self {
        Self(log)
    }

    pub(super) fn describe(&self, difference: &Difference<'_>) -> String {
        let Difference { table, columns, .. } = difference;
        let row = difference
            .log_says
            .as_ref()
            .or(difference.table_says.as_ref());
        let key = columns.iter().zip(row.into_iter().flatten());
        let key: Vec<_> = key
            .filter(|(column, _)| column.is_key)
            .map(|(column, value)| {
                format!("{}={}", column.name, self.value(column, value.as_ref()))
            })
            .collect();
        let key = key.join(", ");
        match (&difference.log_says, &difference.table_says) {
            (Some(log), Some(row)) => {
                let columns = columns.iter().zip(log.iter().zip(row));
                let differing: Vec<_> = columns
                    .filter(|(_, (log, row))| log != row)
                    .map(|(column, (log, row))| {
                        let (log, row) = (
                            self.value(column, log.as_ref()),
                            self.value(column, row.as_ref()),
                        );
                        format!("{}: {log} in the log, {row} in the table", column.name)
                    })
                    .collect();
                format!("{table} ({key}): {}", differing.join("; "))
            }
            (Some(_), None) => format!("{table} ({key}): missing in the table"),
            _ => format!("{table} ({key}): not in the log"),
        }
    }

    /// Shows a value that names nobody as it is, any other as a hash: a difference is visible.
    fn value(&self, column: &Column, value: Option<&String>) -> String {
        match value {
            None => "nothing".to_owned(),
            Some(value) if is_plain(column, value) => value.clone(),
            Some(value) => {
                let keyring = self.0.keyring();
                let mut hash = keyring.keyed_hash("verify", &[value.as_bytes()]);
                hash.truncate(8);
                format!("#{hash}")
            }
        }
    }
}

fn is_plain(column: &Column, value: &str) -> bool {
    let name = column.name.as_str();
    match column.kind.as_str() {
        "bigint" | "boolean" | "date" | "numeric" | "timestamp with time zone" | "uuid" => true,
        "text" if name == "id" || name == "parent" || name.ends_with("_id") => is_token(value),
        _ => PLAIN.contains(&name),
    }
}

/// Ids from outside may be anything, even an e-mail address.
fn is_token(value: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    value.len() <= 64 && value.bytes().all(fits)
}
