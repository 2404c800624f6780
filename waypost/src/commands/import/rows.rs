//! The rows of a file, read on a separate thread and handed over as fast as they are consumed.

use std::fmt;
use std::io::{self, BufRead as _};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

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
pub(super) struct Rows {
    rows: mpsc::Receiver<Row>,
    outcome: Outcome,
}

/// How the reading of rows ends.
pub(super) struct Outcome(JoinHandle<Result<(), Unreadable>>);

/// The row at which a file could not be read on.
#[derive(Debug)]
pub(super) struct Unreadable {
    file: PathBuf,
    row: u64,
    line: u64,
    error: io::Error,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            row, line, error, ..
        } = self;
        let file = self.file.display();
        write!(f, "{file}: row {row} (line {line}) cannot be read: {error}")
    }
}

impl std::error::Error for Unreadable {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

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
        let unreadable = |error: io::Error| format!("{}: {error}", path.display());
        let mut source = source::open(path, 0, &progress)?;
        let beginning = source.fill_buf().map_err(unreadable)?;
        let format = format.unwrap_or_else(|| format_of(beginning));
        let delimiter = delimiter_of(beginning);
        let mut lines = beginning.split(|byte| *byte == b'\n');
        let ends_twice = lines.next().is_some_and(|line| line.ends_with(b"\r"));
        let content = match format {
            Format::Csv => {
                let mut reader = cut_by(delimiter).from_reader(source);
                let header = reader.headers();
                let header = header.map_err(|error| unreadable(error.into()))?;
                let mapping = Mapping::new(kind, header, named)?;
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
            file: self.path.clone(),
            kind: self.kind,
            from: from.unwrap_or_default(),
            ends_twice: self.ends_twice,
            rows,
        };
        let again = |from: FilePosition| source::open(&self.path, from.bytes, &self.progress);
        let reading = match (self.content, from) {
            (Content::Csv(csv), None) => {
                std::thread::spawn(move || reading.csv(*csv.reader, &csv.mapping))
            }
            (Content::Csv(csv), Some(from)) => {
                let mut reader = cut_by(csv.delimiter);
                let reader = reader.has_headers(false).from_reader(again(from)?);
                std::thread::spawn(move || reading.csv(reader, &csv.mapping))
            }
            (Content::Ndjson(source), None) => std::thread::spawn(move || reading.ndjson(source)),
            (Content::Ndjson(_), Some(from)) => {
                let source = again(from)?;
                std::thread::spawn(move || reading.ndjson(source))
            }
        };
        Ok(Rows {
            rows: taken,
            outcome: Outcome(reading),
        })
    }
}

impl Rows {
    /// The rows, and how their reading ends.
    pub(super) fn split(self) -> (impl Stream<Item = Row>, Outcome) {
        let some = stream::unfold(self.rows, async |mut rows| {
            let mut some = Vec::new();
            // One by one, the runtime would yield after every hundred or so, and the import would
            // write small batches.
            let count = rows.recv_many(&mut some, AT_ONCE).await;
            (count > 0).then_some((stream::iter(some), rows))
        });
        (some.flatten(), self.outcome)
    }
}

impl Outcome {
    /// Whether the file was read to its end. Known once there are no more rows.
    pub(super) fn get(self) -> Result<(), Unreadable> {
        match self.0.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        }
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
    file: PathBuf,
    kind: Kind,
    /// The place that the reader's own places are relative to.
    from: FilePosition,
    ends_twice: bool,
    rows: mpsc::Sender<Row>,
}

impl Reading {
    fn csv(&self, mut reader: csv::Reader<Source>, mapping: &Mapping) -> Result<(), Unreadable> {
        let mut record = csv::StringRecord::new();
        for number in self.from.rows + 1.. {
            let read = reader.read_record(&mut record);
            // A row's place is after the carriage return that ends the previous one.
            let begins = record.position().map_or(1, csv::Position::line);
            let line = self.from.lines + begins + u64::from(self.ends_twice);
            let draft = match read {
                Ok(false) => break,
                Ok(true) => mapping.draft(&record),
                Err(error) if error.is_io_error() => {
                    return Err(self.unreadable(number, line, error.into()));
                }
                Err(error) => Err(error.to_string().into()),
            };
            let position = reader.position();
            let row = Row {
                line,
                end: FilePosition {
                    rows: number,
                    lines: self.from.lines + position.line() - 1,
                    bytes: self.from.bytes + position.byte(),
                },
                draft,
            };
            if !self.hand_over(row) {
                break;
            }
        }
        Ok(())
    }

    fn ndjson(&self, mut source: Source) -> Result<(), Unreadable> {
        let mut line = Vec::new();
        let mut end = self.from;
        loop {
            line.clear();
            let read = source.read_until(b'\n', &mut line);
            end.rows += 1;
            end.lines += 1;
            end.bytes += line.len() as u64;
            let draft = match read {
                Ok(0) => return Ok(()),
                Ok(_) if line.trim_ascii().is_empty() => continue,
                Ok(_) => read_line(self.kind, &line),
                Err(error) => return Err(self.unreadable(end.rows, end.lines, error)),
            };
            let row = Row {
                line: end.lines,
                end,
                draft,
            };
            if !self.hand_over(row) {
                return Ok(());
            }
        }
    }

    fn unreadable(&self, row: u64, line: u64, error: io::Error) -> Unreadable {
        Unreadable {
            file: self.file.clone(),
            row,
            line,
            error,
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

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::{fs, iter};

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use local_servers::TemporaryHome;

    use super::*;

    /// What is read of a file with this content.
    async fn read(format: Format, content: &[u8]) -> (Vec<Row>, Result<(), Unreadable>) {
        let home = TemporaryHome::new().unwrap();
        let path = home.path().join("contacts");
        fs::write(&path, content).unwrap();
        let table = Table::open(
            &path,
            Some(format),
            Kind::Contacts,
            &[],
            Progress::of(&path),
        );
        let (rows, outcome) = table.unwrap().rows(None).unwrap().split();
        (rows.collect().await, outcome.get())
    }

    /// More than is packed together.
    const MANY: usize = 20_000;

    fn content(format: Format) -> String {
        let rows = (0..MANY).map(|nth| match format {
            Format::Csv => format!("a{nth}@b.c\r\n"),
            Format::Ndjson => format!("{{\"email\": \"a{nth}@b.c\"}}\n"),
        });
        let header = if format == Format::Csv {
            "email\r\n"
        } else {
            ""
        };
        iter::once(header.to_owned()).chain(rows).collect()
    }

    fn gzip(content: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[tokio::test]
    async fn a_packed_file_that_breaks_off_is_no_row_but_an_error() {
        for format in [Format::Csv, Format::Ndjson] {
            let text = content(format);
            for packed in [gzip(&text), zstd::encode_all(text.as_bytes(), 3).unwrap()] {
                let (rows, end) = read(format, &packed).await;
                assert!(rows.len() == MANY && end.is_ok(), "{format:?}");
                let (rows, end) = read(format, &packed[..packed.len() - 1]).await;
                let end = end.unwrap_err();
                assert!(!rows.is_empty() && rows.iter().all(|row| row.draft.is_ok()));
                assert_eq!(end.row, rows.len() as u64 + 1);
                let header = u64::from(format == Format::Csv);
                assert_eq!(end.line, end.row + header, "{end}");
            }
        }
    }

    #[tokio::test]
    async fn a_row_that_is_malformed_ends_nothing() {
        for (format, content) in [
            (Format::Csv, &b"email\na@b.c\n\xff\nd@e.f,\ng@h.i"[..]),
            (
                Format::Ndjson,
                b"{\"email\": \"a@b.c\"}\n\xff\n{\n{\"email\": \"g@h.i\"}",
            ),
        ] {
            let (rows, end) = read(format, content).await;
            let read: Vec<_> = rows.iter().map(|row| row.draft.is_ok()).collect();
            assert_eq!(read, [true, false, false, true], "{format:?}");
            assert!(end.is_ok(), "{format:?}");
        }
    }
}
