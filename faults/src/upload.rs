//! Many records in one body, in the forms that an API accepts.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream;
use reqwest::RequestBuilder;
use serde_json::{Map, Value};

use hostile::Dice;

/// The encoding of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Each as a line of JSON.
    Lines,
    /// Each as a row below a header row, with this separator between its cells.
    Rows(u8),
}

/// A body of many records.
#[derive(Clone, Debug)]
pub(crate) struct Upload {
    form: Form,
    is_packed: bool,
    body: Vec<u8>,
    /// Where the first attempt breaks off, if it does.
    cut_off: Option<usize>,
}

impl Upload {
    /// Encodes records, which all have the same fields except for ids that some may lack.
    pub(crate) fn of(records: &[Value], dice: &mut Dice) -> Self {
        let form = match dice.below(6) {
            0 => Form::Rows(b';'),
            1 => Form::Rows(b'\t'),
            2 => Form::Rows(b','),
            _ => Form::Lines,
        };
        let plain = match form {
            Form::Lines => {
                let lines: Vec<_> = records.iter().map(ToString::to_string).collect();
                lines.join("\n").into_bytes()
            }
            Form::Rows(delimiter) => rows(records, delimiter),
        };
        let is_packed = dice.chance(30);
        let body = if is_packed { packed(&plain) } else { plain };
        let cut_off = dice.chance(30).then(|| dice.below(body.len()));
        Self {
            form,
            is_packed,
            body,
            cut_off,
        }
    }

    /// The name of such a command in the summary.
    pub(crate) fn name(&self) -> &'static str {
        match self.form {
            Form::Lines => "post lines",
            Form::Rows(_) => ROWS,
        }
    }

    /// Sets this body on a request; the first attempt may send only its beginning.
    pub(crate) fn put_in(&self, request: RequestBuilder, is_first: bool) -> RequestBuilder {
        let kind = match self.form {
            Form::Lines => "application/x-ndjson",
            Form::Rows(_) => "text/csv",
        };
        let mut request = request.header("content-type", kind);
        if self.is_packed {
            request = request.header("content-encoding", "gzip");
        }
        let Some(end) = self.cut_off.filter(|_| is_first) else {
            return request.body(self.body.clone());
        };
        let beginning = Ok(self.body[..end].to_vec());
        let pieces = [beginning, Err(std::io::Error::other("cut off"))];
        request.body(reqwest::Body::wrap_stream(stream::iter(pieces)))
    }
}

/// The summary's name for an upload of rows; the first line of such a body is not a record.
pub(crate) const ROWS: &str = "post rows";

fn packed(plain: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    let written = packed.write_all(plain);
    written.and_then(|()| packed.finish()).unwrap_or_default()
}

fn rows(records: &[Value], delimiter: u8) -> Vec<u8> {
    let records: Vec<_> = records.iter().map(flat).collect();
    let mut columns: Vec<&String> = records.iter().flat_map(Map::keys).collect();
    columns.sort_unstable();
    columns.dedup();
    let mut table = csv::WriterBuilder::new()
        .delimiter(delimiter)
        .from_writer(Vec::new());
    // Writes to memory, every row as long as the header.
    let _ = table.write_record(&columns);
    for record in &records {
        let cells = columns.iter().map(|column| cell(record.get(*column)));
        let _ = table.write_record(cells);
    }
    table.into_inner().unwrap_or_default()
}

/// Nested fields get both names, joined by a dot.
fn flat(record: &Value) -> Map<String, Value> {
    let mut flat = Map::new();
    for (name, value) in record.as_object().into_iter().flatten() {
        match value {
            Value::Object(inner) => {
                let inner = inner
                    .iter()
                    .map(|(inner, value)| (format!("{name}.{inner}"), value.clone()));
                flat.extend(inner);
            }
            value => {
                flat.insert(name.clone(), value.clone());
            }
        }
    }
    flat
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn records_become_rows_below_their_fields() {
        let records = [
            json!({"id": "a", "name": "Zoë; \"Z\"", "client": {"name": "C"}, "amount": 5}),
            json!({"name": "none", "client": {"name": null}, "amount": 12.5}),
        ];
        let table = String::from_utf8(rows(&records, b';')).unwrap();
        let expected = "amount;client.name;id;name\n5;C;a;\"Zoë; \"\"Z\"\"\"\n12.5;;;none\n";
        assert_eq!(table, expected);
    }
}
