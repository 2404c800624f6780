//! What can go wrong with an export.

use std::io;

use service::HttpError;
use tokio::task::JoinError;

use super::only_listed_statuses;
use super::tuples::Malformed;

/// Why an export was not made or broke off.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The database said no, or nothing.
    #[error("the rows cannot be read")]
    Database(#[from] sqlx::Error),
    /// What the database sent is not rows.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The file could not be written.
    #[error("the file cannot be written")]
    Write(#[from] io::Error),
    /// The thread that wrote the file ended early.
    #[error("the writer ended early")]
    Writer(#[from] JoinError),
    /// Others took all places for too long.
    #[error("too many exports were in progress")]
    Busy,
    /// The client took nothing for too long.
    #[error("the client took no rows for too long")]
    Stalled,
    /// It took longer than an export may.
    #[error("the export took too long")]
    Late,
    /// The client went away.
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
