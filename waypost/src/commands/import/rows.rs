//! The rows of a file, read on a thread of their own and handed over as fast as they are taken.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::Path;

use command_api::records::Row;
use domain::record::{Draft, Kind, parse_object};
use futures::{Stream, StreamExt as _, stream};
use tokio::sync::mpsc;

use super::Format;
use super::mapping::{Mapping, Named};
use super::progress::Progress;
use crate::Failure;

/// Rows read ahead of their writing.
const AHEAD: usize = 4_000;
/// Rows handed over at a time.
const AT_ONCE: usize = 1_000;

/// Rows on their way from a file.
pub(super) struct Rows(mpsc::Receiver<Row>);

type Source = BufReader<Box<dyn Read + Send>>;

impl Rows {
    /// Begins to read; without a `format`, as the beginning looks. A header row that does not fit
    /// is found at once.
    pub(super) fn open(
        path: &Path,
        format: Option<Format>,
        kind: Kind,
        named: &[Named],
        progress: Progress,
    ) -> Result<Self, Failure> {
        let source: Box<dyn Read + Send> = if path == Path::new("-") {
            Box::new(io::stdin())
        } else {
            Box::new(File::open(path).map_err(|error| format!("{}: {error}", path.display()))?)
        };
        let mut source = BufReader::new(source);
        let format = match format {
            Some(format) => format,
            None => format_of(source.fill_buf()?),
        };
        let (rows, taken) = mpsc::channel(AHEAD);
        match format {
            Format::Csv => {
                let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(source);
                let mapping = Mapping::new(kind, reader.headers()?, named)?;
                if !mapping.left_out.is_empty() {
                    eprintln!("Columns left out: {}", mapping.left_out.join(", "));
                }
                std::thread::spawn(move || read_csv(reader, &mapping, &rows, &progress));
            }
            Format::Ndjson if !named.is_empty() => {
                return Err("--map: only the columns of a CSV can be named".into());
            }
            Format::Ndjson => {
                std::thread::spawn(move || read_ndjson(source, kind, &rows, &progress));
            }
        }
        Ok(Self(taken))
    }

    pub(super) fn stream(self) -> impl Stream<Item = Row> {
        let some = stream::unfold(self.0, async |mut rows| {
            let mut some = Vec::new();
            // One by one, the runtime would interrupt after every hundred or so, and the import
            // would write small batches.
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

fn read_csv(
    mut reader: csv::Reader<Source>,
    mapping: &Mapping,
    rows: &mpsc::Sender<Row>,
    progress: &Progress,
) {
    let mut record = csv::StringRecord::new();
    for number in 1.. {
        let draft = match reader.read_record(&mut record) {
            Ok(false) => return,
            Ok(true) => mapping.draft(&record),
            Err(error) => Err(error.to_string()),
        };
        progress.read_to(reader.position().byte());
        let ended = draft.is_err() && reader.is_done();
        // Nobody takes rows any more once the import has ended.
        if rows.blocking_send(Row { number, draft }).is_err() || ended {
            return;
        }
    }
}

fn read_ndjson(mut source: Source, kind: Kind, rows: &mpsc::Sender<Row>, progress: &Progress) {
    let (mut line, mut byte) = (Vec::new(), 0);
    for number in 1.. {
        line.clear();
        let read = source.read_until(b'\n', &mut line);
        let draft = match read {
            Ok(0) => return,
            Ok(_) if line.trim_ascii().is_empty() => continue,
            Ok(_) => read_line(kind, &line),
            Err(ref error) => Err(error.to_string()),
        };
        byte += line.len() as u64;
        progress.read_to(byte);
        if rows.blocking_send(Row { number, draft }).is_err() || read.is_err() {
            return;
        }
    }
}

fn read_line(kind: Kind, line: &[u8]) -> Result<Draft, String> {
    match serde_json::from_slice(line) {
        Ok(serde_json::Value::Object(object)) => {
            parse_object(kind, object).map_err(|error| error.to_string())
        }
        Ok(_) => Err("is not a JSON object".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
