//! The rows of a file, read on a separate thread and handed over as fast as they are consumed.

use std::io::BufRead as _;
use std::path::{Path, PathBuf};

use command_api::records::{Fault, FilePosition, Row, delimiter_of};
use domain::record::{Draft, Kind, parse_object};
use futures::{Stream, StreamExt as _, stream};
use tokio::sync::mpsc;

use super::Format;
use super::mapping::{Mapping, Named};
use super::progress::Progress;
use super::source::{self, Source};
use crate::Failure;

/// Rows read ahead of their writing.
const AHEAD: usize = 8_000;
/// Rows handed over at a time.
const AT_ONCE: usize = 1_000;

/// A file whose format is known.
pub(super) struct Table {
    path: PathBuf,
    kind: Kind,
    content: Content,
    /// Whether rows end in a carriage return and a line feed.
    ends_twice: bool,
    progress: Progress,
}

enum Content {
    Csv(Csv),
    Ndjson(Source),
}

struct Csv {
    reader: Box<csv::Reader<Source>>,
    mapping: Mapping,
    delimiter: u8,
}

/// Rows being read from a file.
pub(super) struct Rows(mpsc::Receiver<Row>);

impl Table {
    /// Begins to read; without a `format`, it is detected from the beginning. A header row that
    /// does not fit is reported at once.
    pub(super) fn open(
        path: &Path,
        format: Option<Format>,
        kind: Kind,
        named: &[Named],
        progress: Progress,
    ) -> Result<Self, Failure> {
        let mut source = source::open(path, 0, &progress)?;
        let beginning = source.fill_buf()?;
        let format = format.unwrap_or_else(|| format_of(beginning));
        let delimiter = delimiter_of(beginning);
        let mut lines = beginning.split(|byte| *byte == b'\n');
        let ends_twice = lines.next().is_some_and(|line| line.ends_with(b"\r"));
        let content = match format {
            Format::Csv => {
                let mut reader = cut_by(delimiter).from_reader(source);
                let mapping = Mapping::new(kind, reader.headers()?, named)?;
                if !mapping.left_out.is_empty() {
                    eprintln!("Columns left out: {}", mapping.left_out.join(", "));
                }
                Content::Csv(Csv {
                    reader: Box::new(reader),
                    mapping,
                    delimiter,
                })
            }
            Format::Ndjson if !named.is_empty() => {
                return Err("--map: only the columns of a CSV can be named".into());
            }
            Format::Ndjson => Content::Ndjson(source),
        };
        Ok(Self {
            path: path.to_owned(),
            kind,
            content,
            ends_twice,
            progress,
        })
    }

    /// The rows after the place that an earlier import has reached; all of them without one.
    pub(super) fn rows(self, from: Option<FilePosition>) -> Result<Rows, Failure> {
        let (rows, taken) = mpsc::channel(AHEAD);
        let reading = Reading {
            kind: self.kind,
            from: from.unwrap_or_default(),
            ends_twice: self.ends_twice,
            rows,
        };
        let again = |from: FilePosition| source::open(&self.path, from.bytes, &self.progress);
        match (self.content, from) {
            (Content::Csv(csv), None) => {
                std::thread::spawn(move || reading.csv(*csv.reader, &csv.mapping));
            }
            (Content::Csv(csv), Some(from)) => {
                let mut reader = cut_by(csv.delimiter);
                let reader = reader.has_headers(false).from_reader(again(from)?);
                std::thread::spawn(move || reading.csv(reader, &csv.mapping));
            }
            (Content::Ndjson(source), None) => {
                std::thread::spawn(move || reading.ndjson(source));
            }
            (Content::Ndjson(_), Some(from)) => {
                let source = again(from)?;
                std::thread::spawn(move || reading.ndjson(source));
            }
        }
        Ok(Rows(taken))
    }
}

impl Rows {
    pub(super) fn stream(self) -> impl Stream<Item = Row> {
        let some = stream::unfold(self.0, async |mut rows| {
            let mut some = Vec::new();
            // One by one, the runtime would yield after every hundred or so, and the import would
            // write small batches.
            let count = rows.recv_many(&mut some, AT_ONCE).await;
            (count > 0).then_some((stream::iter(some), rows))
        });
        some.flatten()
    }
}

/// A JSON object begins with a brace, which no field's name does.
fn format_of(beginning: &[u8]) -> Format {
    if beginning.trim_ascii_start().first() == Some(&b'{') {
        Format::Ndjson
    } else {
        Format::Csv
    }
}

/// Reads rows with any number of cells: a fault of one is reported and does not end the import.
fn cut_by(delimiter: u8) -> csv::ReaderBuilder {
    let mut reader = csv::ReaderBuilder::new();
    reader.flexible(true).delimiter(delimiter);
    reader
}

struct Reading {
    kind: Kind,
    /// The place that the reader's own places are relative to.
    from: FilePosition,
    ends_twice: bool,
    rows: mpsc::Sender<Row>,
}

impl Reading {
    fn csv(&self, mut reader: csv::Reader<Source>, mapping: &Mapping) {
        let mut record = csv::StringRecord::new();
        for number in self.from.rows + 1.. {
            let draft = match reader.read_record(&mut record) {
                Ok(false) => return,
                Ok(true) => mapping.draft(&record),
                Err(error) => Err(error.to_string().into()),
            };
            // A row's place is after the carriage return that ends the previous one.
            let begins = record.position().map_or(1, csv::Position::line);
            let begins = begins + u64::from(self.ends_twice);
            let position = reader.position();
            let ended = draft.is_err() && reader.is_done();
            let row = Row {
                line: self.from.lines + begins,
                end: FilePosition {
                    rows: number,
                    lines: self.from.lines + position.line() - 1,
                    bytes: self.from.bytes + position.byte(),
                },
                draft,
            };
            if !self.hand_over(row) || ended {
                return;
            }
        }
    }

    fn ndjson(&self, mut source: Source) {
        let mut line = Vec::new();
        let mut end = self.from;
        loop {
            line.clear();
            let read = source.read_until(b'\n', &mut line);
            end.rows += 1;
            end.lines += 1;
            end.bytes += line.len() as u64;
            let draft = match read {
                Ok(0) => return,
                Ok(_) if line.trim_ascii().is_empty() => continue,
                Ok(_) => read_line(self.kind, &line),
                Err(ref error) => Err(error.to_string().into()),
            };
            let row = Row {
                line: end.lines,
                end,
                draft,
            };
            if !self.hand_over(row) || read.is_err() {
                return;
            }
        }
    }

    /// Sends a row; returns whether rows are still taken, which ends with the import.
    fn hand_over(&self, row: Row) -> bool {
        self.rows.blocking_send(row).is_ok()
    }
}

fn read_line(kind: Kind, line: &[u8]) -> Result<Draft, Fault> {
    match serde_json::from_slice(line) {
        Ok(serde_json::Value::Object(object)) => parse_object(kind, object).map_err(Fault::from),
        Ok(_) => Err("is not a JSON object".to_owned().into()),
        Err(error) => Err(error.to_string().into()),
    }
}
