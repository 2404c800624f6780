//! What an import would reject, without importing anything.

use command_api::records::{Imported, Rejected, Row};
use futures::{Stream, StreamExt as _};

use super::progress::Progress;
use super::rejects::Rejects;
use super::report;
use super::rows::Rows;
use crate::Failure;

/// Rows checked together.
const CHUNK: usize = 1_000;

/// Checks all rows and reports what it has found.
pub(super) async fn run(
    rows: Rows,
    mut rejects: Rejects,
    progress: &Progress,
) -> Result<(), Failure> {
    let (rows, outcome) = rows.split();
    let mut unwritable = None;
    let checked = check(rows, |so_far, rejected| {
        progress.show(so_far, so_far.imported() + so_far.rejected);
        unwritable = unwritable.take().or(rejects.add(rejected).err());
    });
    let checked = checked.await;
    progress.end();
    unwritable.map_or(Ok(()), Err)?;
    if let Err(unreadable) = outcome.get() {
        let rejected = checked.rejected;
        return Err(match rejects.finish()? {
            Some(path) => {
                let path = path.display();
                format!("{unreadable}; {rejected} rows before it would be rejected: {path}").into()
            }
            None => unreadable.into(),
        });
    }
    report(&checked, rejects, true)
}

/// Checks all rows; `on_chunk` is called as by an import.
async fn check(
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
