//! Imports records from a file, as the operator does.

use std::sync::Arc;
use std::time::Duration;

use domain::FieldError;
use domain::record::{Change, Draft, Kind};
use event_log::Position;
use futures::{Stream, StreamExt as _};
use schemas::{OrgId, RecordId};
use tokio_util::task::AbortOnDropHandle;

use super::batch::{self, Newness, NotWritten, Target, Wanted, Written};
use super::order::{Order, SIDE_BY_SIDE, Turn};
use super::rest::Rest;
use crate::{Commands, LogError, Origin};

/// Records written together. Those of several chunks enter the log in any order.
pub const CHUNK: usize = 1_000;
/// How often a chunk is retried while the log is unavailable, and the pause between.
const MAX_TRIES: usize = 120;
const PAUSE: Duration = Duration::from_millis(500);

/// A place between two rows of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilePosition {
    /// The rows before it.
    pub rows: u64,
    /// The lines before it.
    pub lines: u64,
    /// The bytes before it.
    pub bytes: u64,
}

/// One row of a file.
#[derive(Clone, Debug)]
pub struct Row {
    /// The line that it begins on, from 1.
    pub line: u64,
    /// Where it ends. Its number is the count of rows before this place, itself included.
    pub end: FilePosition,
    /// The record, or why it cannot be read.
    pub draft: Result<Draft, Fault>,
}

/// An error in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The field at fault, if it is a single one.
    pub field: Option<String>,
    /// The error message for people, which names the field too.
    pub reason: String,
}

/// A row that was not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Its number.
    pub number: u64,
    /// The line that it begins on.
    pub line: u64,
    /// Why.
    pub fault: Fault,
}

/// The progress of an import.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// Records that did not exist before.
    pub created: u64,
    /// Records that were replaced.
    pub updated: u64,
    /// Records that were the same already.
    pub unchanged: u64,
    /// Rows that were not written.
    pub rejected: u64,
    /// The place in the file before which all rows are done.
    pub through: Option<FilePosition>,
    /// The position at which reads see all of it; none before the first record.
    pub position: Option<Position>,
}

impl Imported {
    /// Records that are now as in the file.
    pub fn imported(&self) -> u64 {
        self.created + self.updated + self.unchanged
    }
}

/// Why an import ended before its file.
#[derive(Debug, thiserror::Error)]
#[error("the import stopped after {} records: {source}", so_far.imported())]
pub struct ImportError {
    /// The progress so far; all of that is in the log.
    pub so_far: Imported,
    /// The error that stopped it.
    pub source: LogError,
}

/// An import of records.
#[derive(Clone, Debug)]
pub struct Import {
    /// The commands that write them.
    pub commands: Commands,
    /// Where the import comes from.
    pub origin: Origin,
    /// The organization.
    pub org: OrgId,
    /// Their kind.
    pub kind: Kind,
    /// Identifies the file. Rows without an id get the same one again whenever the same file is
    /// imported; without this, a new one.
    pub source: Option<Vec<u8>>,
}

/// Writes rows, some chunks concurrently; rows of the same record are written in the order of the
/// file. `on_chunk` receives, in that order, the progress of the import and the rows of a chunk
/// that were not written. If the log is unavailable, the import waits for up to a minute and writes
/// what was not confirmed again; what turns out to be written is found unchanged.
pub async fn import(
    import: Import,
    rows: impl Stream<Item = Row>,
    mut on_chunk: impl FnMut(&Imported, &[Rejected]),
) -> Result<Imported, ImportError> {
    let mut so_far = Imported::default();
    let work = Arc::new(Work {
        import,
        newness: Newness::default(),
    });
    let mut order = Order::default();
    let chunks = rows.ready_chunks(CHUNK).map(|rows| {
        let chunk = work.chunk(rows);
        let turn = order.turn(&chunk.wanted);
        AbortOnDropHandle::new(tokio::spawn(Arc::clone(&work).write(chunk, turn)))
    });
    let mut written = std::pin::pin!(chunks.buffered(SIDE_BY_SIDE));
    while let Some(ended) = written.next().await {
        let dropped = |error: tokio::task::JoinError| LogError::Broken(error.to_string());
        match ended.map_err(dropped).flatten() {
            Ok((chunk, written)) => {
                let rejected = so_far.count(chunk, written);
                on_chunk(&so_far, &rejected);
            }
            Err(source) => return Err(ImportError { so_far, source }),
        }
    }
    Ok(so_far)
}

struct Work {
    import: Import,
    newness: Newness,
}

/// Rows that are written together.
struct Chunk {
    wanted: Vec<Wanted>,
    /// The number and the line of each of these.
    places: Vec<(u64, u64)>,
    rejected: Vec<Rejected>,
    through: Option<FilePosition>,
}

impl Work {
    fn chunk(&self, rows: Vec<Row>) -> Chunk {
        let mut chunk = Chunk {
            wanted: Vec::with_capacity(rows.len()),
            places: Vec::with_capacity(rows.len()),
            rejected: Vec::new(),
            through: None,
        };
        for row in rows {
            let (number, line) = (row.end.rows, row.line);
            chunk.through = Some(row.end);
            match row.draft {
                Err(fault) => chunk.rejected.push(Rejected {
                    number,
                    line,
                    fault,
                }),
                Ok(draft) => {
                    chunk.wanted.push(self.wanted(number, draft));
                    chunk.places.push((number, line));
                }
            }
        }
        chunk
    }

    fn wanted(&self, number: u64, draft: Draft) -> Wanted {
        let Import { commands, org, .. } = &self.import;
        if let Some(id) = draft.id() {
            return Wanted::new(id.clone(), draft);
        }
        let Some(source) = &self.import.source else {
            return Wanted {
                is_new: true,
                ..Wanted::new(RecordId::from(commands.random.id()), draft)
            };
        };
        let kind = self.import.kind.name();
        let (org, number) = (org.as_str(), number.to_be_bytes());
        let parts = [source.as_slice(), org.as_bytes(), kind.as_bytes(), &number];
        let id = commands.log().keyring().derived_uuid("imported", &parts);
        Wanted::new(RecordId::from(id), draft)
    }

    async fn write(
        self: Arc<Self>,
        chunk: Chunk,
        turn: Turn,
    ) -> Result<(Chunk, Written), LogError> {
        turn.comes().await;
        let written = self.write_with_retries(&chunk.wanted).await?;
        Ok((chunk, written))
    }

    async fn write_with_retries(&self, wanted: &[Wanted]) -> Result<Written, LogError> {
        let target = Target {
            org: &self.import.org,
            kind: self.import.kind,
            origin: &self.import.origin,
            key: None,
        };
        let (mut rest, mut tries) = (Rest::of(wanted), 1);
        loop {
            let commands = &self.import.commands;
            let tried = batch::write(commands, target, &self.newness, rest.wanted()).await;
            match rest.settle(tried) {
                None => return Ok(rest.into_written()),
                Some(LogError::HeldBack | LogError::Unavailable(_)) if tries < MAX_TRIES => {
                    tries += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                Some(error) => return Err(error),
            }
        }
    }
}

impl Imported {
    /// Counts a chunk. Returns its rows that were not written.
    fn count(&mut self, chunk: Chunk, written: Written) -> Vec<Rejected> {
        let mut rejected = chunk.rejected;
        for (outcome, (number, line)) in written.outcomes.into_iter().zip(chunk.places) {
            let reason = match outcome {
                Ok(Change::Created) => {
                    self.created += 1;
                    continue;
                }
                Ok(Change::Updated) => {
                    self.updated += 1;
                    continue;
                }
                Ok(Change::Unchanged) => {
                    self.unchanged += 1;
                    continue;
                }
                Err(NotWritten::Refused(reason)) => reason,
                Err(NotWritten::Unconfirmed) => {
                    "the event log did not confirm this row; import it again"
                }
            };
            rejected.push(Rejected {
                number,
                line,
                fault: reason.to_owned().into(),
            });
        }
        rejected.sort_by_key(|row| row.number);
        self.rejected += rejected.len() as u64;
        self.through = chunk.through.or(self.through);
        // Chunks are written concurrently, so a later one may precede an earlier one in the log.
        let reached = written.position.into_iter().chain(self.position);
        self.position = reached.max_by_key(|position| position.sequence());
        rejected
    }
}

impl From<FieldError> for Fault {
    fn from(error: FieldError) -> Self {
        Self {
            reason: error.to_string(),
            field: Some(error.field),
        }
    }
}

impl From<String> for Fault {
    fn from(reason: String) -> Self {
        Self {
            field: None,
            reason,
        }
    }
}
