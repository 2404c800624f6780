//! What an import would reject, without importing anything.

use command_api::records::{Imported, Rejected, Row};
use futures::{Stream, StreamExt as _};

/// Rows checked together.
const CHUNK: usize = 1_000;

/// Checks all rows; `on_chunk` is called as by an import.
pub(super) async fn check(
    rows: impl Stream<Item = Row>,
    mut on_chunk: impl FnMut(&Imported, &[Rejected]),
) -> Imported {
    let mut so_far = Imported::default();
    let mut chunks = std::pin::pin!(rows.ready_chunks(CHUNK));
    while let Some(rows) = chunks.next().await {
        let mut rejected = Vec::new();
        for Row { line, end, draft } in rows {
            match draft {
                Ok(_) => so_far.created += 1,
                Err(fault) => rejected.push(Rejected {
                    number: end.rows,
                    line,
                    fault,
                }),
            }
        }
        so_far.rejected += rejected.len() as u64;
        on_chunk(&so_far, &rejected);
    }
    so_far
}
