//! Takes rows from the database to a client at the pace of the database.
//!
//! While the client keeps up, they go straight through. Once it has kept them waiting for too long,
//! all waits together, the rest goes to a file first: the connection and the snapshot, which all exports share, wait for nobody.

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

/// Pieces that wait for the client.
const WAITING: usize = 2;

type Pieces = mpsc::Sender<Result<Bytes, ExportError>>;
type Rows = mpsc::Receiver<Result<Batch, ExportError>>;

/// Whose rows are taken, and where to while their client lags.
pub(super) struct Ferry {
    pub(super) org: OrgId,
    pub(super) kind: &'static Kind,
    /// How the file is packed on its way.
    pub(super) coding: Coding,
    pub(super) files: Files,
    /// How long a client may still keep the rows waiting.
    pub(super) lag: Duration,
}

impl Ferry {
    /// The rows as CSV, header first. An error breaks the connection off, so that no client takes
    /// a part for the whole.
    pub(super) fn carry(mut self, rows: Rows) -> impl Stream<Item = Result<Bytes, ExportError>> {
        let (pieces, taken) = mpsc::channel(WAITING);
        background::spawn(async move {
            // Where nobody waits for them any more, the rows are let go of at once.
            let carried = tokio::select! {
                carried = self.go(rows, &pieces) => carried,
                () = pieces.closed() => return,
            };
            if let Err(error) = carried {
                tracing::warn!(%error, kind = self.kind.name, "An export was cut off");
                // The client may have gone meanwhile.
                let _ = pieces.send(Err(error)).await;
            }
        });
        ReceiverStream::new(taken)
    }

    async fn go(&mut self, mut rows: Rows, pieces: &Pieces) -> Result<(), ExportError> {
        let mut header = Vec::new();
        csv::write_header(self.kind.columns, &mut header);
        let mut packer = Packer::new(self.coding)?;
        // Whoever waits sees at once that the file has begun.
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

    /// Gives the last piece to the client, for which no row waits any more.
    async fn end(&self, piece: Bytes, pieces: &Pieces) -> Result<(), ExportError> {
        if piece.is_empty() {
            return Ok(());
        }
        let sent = pieces.send(Ok(piece)).await;
        sent.map_err(|_| ExportError::Abandoned)
    }

    /// Gives a piece to the client; gives it back where the client lags.
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

/// Writes where waiting for the disk holds up nobody else.
async fn written(mut spool: Spool, piece: Bytes) -> Result<Spool, ExportError> {
    let writing = tokio::task::spawn_blocking(move || {
        spool.write_all(&piece)?;
        Ok::<_, io::Error>(spool)
    });
    Ok(writing.await??)
}
