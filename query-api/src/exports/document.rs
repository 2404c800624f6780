//! Files that can only be sent once they are complete.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use schemas::OrgId;
use service::Share;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::column::{Cell, Column};
use super::error::ExportError;
use super::files::{PIECE_BYTES, Spool};
use super::snapshot::Snapshot;
use super::tuples::Batch;
use super::{Document, ExcelWriter, ExportRequest, Fallbacks, PdfWriter};

/// Batches that may wait for the writer.
const BATCHES_WAITING: usize = 2;

/// The metadata of a document.
#[derive(Clone, Debug)]
pub struct Title {
    /// The organization whose records these are.
    pub organization: String,
    /// When they were read.
    pub at: DateTime<Utc>,
}

/// A message to the writer.
enum Rows {
    Some(Batch),
    /// All rows have been sent. If it is missing, the client has disconnected.
    All,
}

/// The requested file, its format and its fonts.
pub(super) struct Writing {
    pub(super) request: ExportRequest,
    pub(super) format: Document,
    pub(super) fallbacks: Arc<Fallbacks>,
}

/// Writes all rows of the snapshot into a file, on a separate thread that holds `place`.
pub(super) async fn write(
    writing: Writing,
    mut snapshot: Snapshot,
    spool: Spool,
    place: Share<OrgId>,
) -> Result<Spool, ExportError> {
    let (rows, waiting) = mpsc::channel(BATCHES_WAITING);
    let organization = snapshot.source.organization;
    let gone = CancellationToken::new();
    // Once all rows have been sent, their channel no longer shows that the client disconnected.
    let _client = gone.clone().drop_guard();
    let writer = background::compute(move || {
        let _place = place;
        writing.write_rows(organization, waiting, Awaited { spool, gone })
    });
    // The rows pass through this task. It is dropped when the client disconnects, which ends both
    // the reader and the writer.
    while let Some(batch) = snapshot.batches.recv().await {
        if rows.send(Rows::Some(batch?)).await.is_err() {
            break; // the writer has failed and says so below
        }
    }
    // If that fails, the writer has failed too.
    let _ = rows.send(Rows::All).await;
    drop(rows);
    writer.await?
}

/// A file that a client waits for. Writing fails once the client has disconnected.
struct Awaited {
    spool: Spool,
    gone: CancellationToken,
}

impl Write for Awaited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.gone.is_cancelled() {
            return Err(io::Error::other("the client went away"));
        }
        self.spool.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.spool.flush()
    }
}

impl Writing {
    fn write_rows(
        self,
        organization: String,
        waiting: mpsc::Receiver<Rows>,
        mut file: Awaited,
    ) -> Result<Spool, ExportError> {
        let request = self.request;
        let mut rows = AwaitedRows {
            waiting,
            columns: request.kind.columns,
            gone: file.gone.clone(),
        };
        let title = Title {
            organization,
            at: request.at,
        };
        match self.format {
            Document::Pdf => {
                let out = BufWriter::with_capacity(PIECE_BYTES, &mut file);
                let mut writer = PdfWriter::new(request.kind, title, &self.fallbacks, out)?;
                rows.each(|cells| Ok(writer.write_row(cells)?))?;
                writer.finish()?;
            }
            Document::Excel => {
                let (packed, whole) = (file.spool.scratch()?, file.spool.scratch()?);
                let mut writer = ExcelWriter::new(request.kind, title, packed)?;
                rows.each(|cells| Ok(writer.write_row(cells)?))?;
                writer.finish(whole, BufWriter::with_capacity(PIECE_BYTES, &mut file))?;
            }
        }
        Ok(file.spool)
    }
}

/// The rows of a file that a client waits for.
struct AwaitedRows {
    waiting: mpsc::Receiver<Rows>,
    columns: &'static [Column],
    gone: CancellationToken,
}

impl AwaitedRows {
    /// Writes row after row, as long as a client waits for the file.
    ///
    /// This is checked before each row: at low priority, writing the waiting batches could take
    /// longer than a place may be held for no client.
    fn each(
        &mut self,
        mut write: impl FnMut(&[Cell<'_>]) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        loop {
            let batch = match self.waiting.blocking_recv() {
                Some(Rows::Some(batch)) => batch,
                Some(Rows::All) => return Ok(()),
                None => return Err(ExportError::Abandoned),
            };
            batch.each_row(self.columns, |cells| {
                if self.gone.is_cancelled() {
                    return Err(ExportError::Abandoned);
                }
                write(cells)
            })?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::exports::files::Files;

    #[tokio::test]
    async fn a_file_that_nobody_waits_for_is_not_finished() {
        let files = Files::new(2, 1_000);
        let spool = files.begin(&OrgId::from("a"), Duration::ZERO).await;
        let gone = CancellationToken::new();
        let spool = spool.unwrap();
        let mut file = Awaited {
            spool,
            gone: gone.clone(),
        };
        file.write_all(b"some").unwrap();
        drop(gone.drop_guard());
        assert!(file.write_all(b"more").is_err());
        assert_eq!(file.spool.length(), 4);
    }
}
