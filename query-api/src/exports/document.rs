//! Files that can only be sent once they are complete.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom};

use axum::body::Body;
use chrono::{DateTime, Utc};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_util::io::ReaderStream;

use super::error::ExportError;
use super::snapshot::Snapshot;
use super::tuples::Batch;
use super::{Asked, Document, ExcelWriter, PdfWriter};

/// The batches that wait for the writer.
const BATCHES_WAITING: usize = 2;
/// A file is sent in pieces of this many bytes.
const PIECE_BYTES: usize = 64 * 1024;

/// What a document says about itself.
#[derive(Clone, Debug)]
pub struct Title {
    /// Whose records these are.
    pub organization: String,
    /// When they were read.
    pub at: DateTime<Utc>,
}

/// A complete file, under no name: it is gone once it is sent, or the process has ended.
pub(super) struct Complete {
    file: File,
    pub(super) length: u64,
}

impl Complete {
    /// The file as the body of an answer.
    pub(super) fn into_body(self) -> Body {
        let file = tokio::fs::File::from_std(self.file);
        Body::from_stream(ReaderStream::with_capacity(file, PIECE_BYTES))
    }
}

/// Writes all rows of the snapshot into a file, on a thread of its own that holds `permit`.
pub(super) async fn write(
    asked: Asked,
    format: Document,
    mut snapshot: Snapshot,
    permit: OwnedSemaphorePermit,
) -> Result<Complete, ExportError> {
    let (rows, batches) = mpsc::channel(BATCHES_WAITING);
    let organization = snapshot.organization;
    let writer = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        write_rows(asked, format, organization, batches)
    });
    // The rows come by way of this task: when its client leaves, it is dropped, and both the
    // reader and the writer find themselves alone and end.
    while let Some(batch) = snapshot.batches.recv().await {
        if rows.send(batch?).await.is_err() {
            break; // the writer has failed and says so below
        }
    }
    drop(rows);
    writer.await?
}

fn write_rows(
    asked: Asked,
    format: Document,
    organization: String,
    mut batches: mpsc::Receiver<Batch>,
) -> Result<Complete, ExportError> {
    let columns = asked.kind.columns;
    let mut file = tempfile::tempfile()?;
    let out = BufWriter::with_capacity(PIECE_BYTES, &mut file);
    let title = Title {
        organization,
        at: asked.at,
    };
    match format {
        Document::Pdf => {
            let mut writer = PdfWriter::new(asked.kind, title, out)?;
            while let Some(batch) = batches.blocking_recv() {
                batch.each_row(columns, |cells| {
                    writer.write_row(cells).map_err(ExportError::from)
                })?;
            }
            writer.finish()?;
        }
        Document::Excel => {
            let mut writer = ExcelWriter::new(asked.kind, &title)?;
            while let Some(batch) = batches.blocking_recv() {
                batch.each_row(columns, |cells| {
                    writer.write_row(cells).map_err(ExportError::from)
                })?;
            }
            writer.finish(out)?;
        }
    }
    let length = file.seek(SeekFrom::End(0))?;
    file.rewind()?;
    Ok(Complete { file, length })
}
