//! Errors of exports.

use std::io;

use service::HttpError;
use tokio::task::JoinError;

use super::only_listed_statuses;
use super::tuples::Malformed;

/// The reason why an export was not made or was cut off.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The database returned an error, or did not answer.
    #[error("the rows cannot be read")]
    Database(#[from] sqlx::Error),
    /// The database did not send valid rows.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The file could not be written.
    #[error("the file cannot be written")]
    Write(#[from] io::Error),
    /// The thread that wrote the file ended early.
    #[error("the writer ended early")]
    Writer(#[from] JoinError),
    /// Other exports occupied all places for too long.
    #[error("too many exports were in progress")]
    Busy,
    /// The client read nothing for too long.
    #[error("the client took no rows for too long")]
    Stalled,
    /// The export exceeded its time limit.
    #[error("the export took too long")]
    Late,
    /// The client disconnected.
    #[error("the client went away")]
    Abandoned,
}

impl From<ExportError> for HttpError {
    fn from(error: ExportError) -> Self {
        let error = match error {
            ExportError::Database(error) => Self::from(error),
            ExportError::Busy => Self::unavailable("too many exports are in progress"),
            other => Self::internal(other),
        };
        only_listed_statuses(error)
    }
}
