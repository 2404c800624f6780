//! Brings records in from a file, as the operator does.

use std::time::Duration;

use domain::record::{Change, Draft, Kind};
use event_log::Position;
use futures::{Stream, StreamExt as _};
use schemas::{OrgId, RecordId};

use super::batch::{self, NotWritten, Target, Wanted, Written};
use crate::{Commands, LogError, Origin};

/// Records written together.
const CHUNK: usize = 1_000;
/// How often a chunk is tried again while the log is away, and the pause between.
const PATIENCE: usize = 120;
const PAUSE: Duration = Duration::from_millis(500);

/// One row of a file.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its number, from 1.
    pub number: u64,
    /// The record, or why it cannot be read.
    pub draft: Result<Draft, String>,
}

/// A row that was not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Its number.
    pub number: u64,
    /// Why.
    pub reason: String,
}

/// How far an import has come.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// Records that were not there before.
    pub created: u64,
    /// Records that were replaced.
    pub updated: u64,
    /// Records that were the same already.
    pub unchanged: u64,
    /// Rows that were not written.
    pub rejected: u64,
    /// Where reads see all of it; none before the first record.
    pub position: Option<Position>,
}

impl Imported {
    /// Records that stand now as the file says.
    pub fn imported(&self) -> u64 {
        self.created + self.updated + self.unchanged
    }
}

/// Why an import ended before its file.
#[derive(Debug, thiserror::Error)]
#[error("the import stopped after {} records: {source}", so_far.imported())]
pub struct ImportError {
    /// How far it came; all of that is in the log.
    pub so_far: Imported,
    /// What stopped it.
    pub source: LogError,
}

/// Whose records come in.
#[derive(Clone, Copy, Debug)]
pub struct Import<'a> {
    /// What writes them.
    pub commands: &'a Commands,
    /// Where the import comes from.
    pub origin: &'a Origin,
    /// The organization.
    pub org: &'a OrgId,
    /// Their kind.
    pub kind: Kind,
}

/// Writes rows in their order, a chunk at a time. `on_chunk` is told after each how far the import
/// has come and which rows of the chunk were not written. A log that is away for up to a minute is
/// waited for; what it had taken already is found unchanged.
pub async fn import(
    import: Import<'_>,
    rows: impl Stream<Item = Row>,
    mut on_chunk: impl FnMut(&Imported, &[Rejected]),
) -> Result<Imported, ImportError> {
    let mut so_far = Imported::default();
    let mut chunks = std::pin::pin!(rows.ready_chunks(CHUNK));
    while let Some(rows) = chunks.next().await {
        match import.write(rows, &mut so_far).await {
            Ok(rejected) => on_chunk(&so_far, &rejected),
            Err(source) => return Err(ImportError { so_far, source }),
        }
    }
    Ok(so_far)
}

impl Import<'_> {
    async fn write(self, rows: Vec<Row>, so_far: &mut Imported) -> Result<Vec<Rejected>, LogError> {
        let (mut numbers, mut wanted, mut rejected) = (Vec::new(), Vec::new(), Vec::new());
        for Row { number, draft } in rows {
            match draft {
                Err(reason) => rejected.push(Rejected { number, reason }),
                Ok(draft) => {
                    let id = draft.id().cloned();
                    let id = id.unwrap_or_else(|| RecordId::from(self.commands.random.id()));
                    let receipt = None;
                    wanted.push(Wanted { id, draft, receipt });
                    numbers.push(number);
                }
            }
        }
        let written = self.write_patiently(&wanted).await?;
        so_far.position = written.position.or(so_far.position);
        for (outcome, number) in written.outcomes.into_iter().zip(numbers) {
            let reason = match outcome {
                Ok(change) => {
                    so_far.count(change);
                    continue;
                }
                Err(NotWritten::Refused(reason)) => reason,
                Err(NotWritten::Unconfirmed) => {
                    "the event log did not confirm this row; import it again"
                }
            };
            let reason = reason.to_owned();
            rejected.push(Rejected { number, reason });
        }
        rejected.sort_by_key(|row| row.number);
        so_far.rejected += rejected.len() as u64;
        Ok(rejected)
    }

    async fn write_patiently(self, wanted: &[Wanted]) -> Result<Written, LogError> {
        let target = Target {
            org: self.org,
            kind: self.kind,
            origin: self.origin,
        };
        for _ in 1..PATIENCE {
            let mut written = batch::write(self.commands, target, wanted).await;
            match written.trouble.take() {
                None => return Ok(written),
                Some(LogError::HeldBack | LogError::Unavailable(_)) => {
                    tokio::time::sleep(PAUSE).await;
                }
                Some(error) => return Err(error),
            }
        }
        let mut written = batch::write(self.commands, target, wanted).await;
        written.trouble.take().map_or(Ok(written), Err)
    }
}

impl Imported {
    fn count(&mut self, change: Change) {
        match change {
            Change::Created => self.created += 1,
            Change::Updated => self.updated += 1,
            Change::Unchanged => self.unchanged += 1,
        }
    }
}
