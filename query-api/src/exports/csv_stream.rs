//! Carries rows from the database to a client at the pace of the database.
//!
//! While the client keeps up, they are sent directly. Once it has made them wait for too long in
//! total, the rest first goes to a file: the connection and the snapshot, which all exports share,
//! never wait.

use std::io::{self, Write as _};
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use schemas::OrgId;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::SendTimeoutError;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;

use super::column::Kind;
use super::csv;
use super::error::ExportError;
use super::files::{Files, Spool};
use super::packing::{Coding, Packer};
use super::tuples::{Batch, Malformed};

/// Pieces that may wait for the client.
const WAITING: usize = 2;

type Pieces = mpsc::Sender<Result<Bytes, ExportError>>;
type Rows = mpsc::Receiver<Result<Batch, ExportError>>;

/// The source of the rows, and where they go while the client lags.
pub(super) struct CsvStream {
    pub(super) org: OrgId,
    pub(super) kind: &'static Kind,
    /// The compression of the file.
    pub(super) coding: Coding,
    pub(super) files: Files,
    /// How long the client may still make the rows wait.
    pub(super) lag: Duration,
}

impl CsvStream {
    /// Returns the rows as CSV, header first. An error breaks the connection, so that no client
    /// mistakes a part for the whole.
    pub(super) fn start(mut self, rows: Rows) -> impl Stream<Item = Result<Bytes, ExportError>> {
        let (pieces, taken) = mpsc::channel(WAITING);
        background::spawn(async move {
            // If no client waits for the rows, they are dropped immediately.
            let carried = tokio::select! {
                carried = self.go(rows, &pieces) => carried,
                () = pieces.closed() => return,
            };
            if let Err(error) = carried {
                tracing::warn!(%error, kind = self.kind.name, "An export was cut off");
                // The client may have disconnected in the meantime.
                let _ = pieces.send(Err(error)).await;
            }
        });
        ReceiverStream::new(taken)
    }

    async fn go(&mut self, mut rows: Rows, pieces: &Pieces) -> Result<(), ExportError> {
        let mut header = Vec::new();
        csv::write_header(self.kind.columns, &mut header);
        let mut packer = Packer::new(self.coding)?;
        // The client sees immediately that the file has begun.
        let mut beginning = packer.pack(header)?.to_vec();
        beginning.extend_from_slice(&packer.flush()?);
        let mut late = self.pass_on(beginning.into(), pieces).await?;
        while late.is_none() {
            let Some(batch) = rows.recv().await else {
                let end = packer.finish()?;
                return self.end(end, pieces).await;
            };
            let piece = packer.pack(self.csv_of(&batch?)?)?;
            late = self.pass_on(piece, pieces).await?;
        }
        metrics::counter!("waypost_export_spooled_total").increment(1);
        let mut spool = self.files.try_begin(&self.org)?;
        if let Some(piece) = late {
            spool = written(spool, piece).await?;
        }
        while let Some(batch) = rows.recv().await {
            spool = written(spool, packer.pack(self.csv_of(&batch?)?)?).await?;
        }
        drop(rows);
        spool = written(spool, packer.finish()?).await?;
        let mut spooled = std::pin::pin!(spool.pieces()?);
        while let Some(piece) = spooled.next().await {
            let sent = pieces.send(Ok(piece?)).await;
            sent.map_err(|_| ExportError::Abandoned)?;
        }
        Ok(())
    }

    /// Sends the last piece to the client. No row waits for it.
    async fn end(&self, piece: Bytes, pieces: &Pieces) -> Result<(), ExportError> {
        if piece.is_empty() {
            return Ok(());
        }
        let sent = pieces.send(Ok(piece)).await;
        sent.map_err(|_| ExportError::Abandoned)
    }

    /// Sends a piece to the client, or returns it if the client lags.
    async fn pass_on(
        &mut self,
        piece: Bytes,
        pieces: &Pieces,
    ) -> Result<Option<Bytes>, ExportError> {
        if piece.is_empty() {
            return Ok(None);
        }
        let began = Instant::now();
        let sent = pieces.send_timeout(Ok(piece), self.lag).await;
        self.lag = self.lag.saturating_sub(began.elapsed());
        match sent {
            Ok(()) => Ok(None),
            Err(SendTimeoutError::Timeout(piece)) => piece.map(Some),
            Err(SendTimeoutError::Closed(_)) => Err(ExportError::Abandoned),
        }
    }

    fn csv_of(&self, batch: &Batch) -> Result<Vec<u8>, ExportError> {
        let mut out = Vec::with_capacity(batch.len());
        batch.each_row(self.kind.columns, |cells| {
            csv::write_row(cells, &mut out);
            Ok::<_, Malformed>(())
        })?;
        Ok(out)
    }
}

/// Writes on a blocking thread, since the disk may be slow.
async fn written(mut spool: Spool, piece: Bytes) -> Result<Spool, ExportError> {
    let writing = tokio::task::spawn_blocking(move || {
        spool.write_all(&piece)?;
        Ok::<_, io::Error>(spool)
    });
    Ok(writing.await??)
}
