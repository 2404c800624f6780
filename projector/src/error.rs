//! Errors that stop a projector, or keep a feed from continuing for now.

use event_log::{ReadError, TailError, VaultError, WentBack};
use sqlx::error::DatabaseError;

use crate::projection::ApplyError;
use crate::reader::ReaderError;

/// Whether the database returned one of these SQLSTATEs.
pub(crate) fn has_code(error: &sqlx::Error, codes: &[&str]) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    code.is_some_and(|code| codes.contains(&&*code))
}

/// Why a projector cannot work at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The tables cannot be migrated to the layout that this program needs.
    #[error("the database cannot be migrated: {0}")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// A part of the projector has panicked.
    #[error("a part of the projector has ended: {0}")]
    Ended(#[from] tokio::task::JoinError),
}

/// Why a batch was not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// Another projector has moved a position, or another process has changed the rows.
    #[error("somebody else has written in the meantime")]
    Overtaken,
    /// The database returned an error or did not respond.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    /// The vault does not answer.
    #[error(transparent)]
    Vault(VaultError),
}

impl From<ApplyError> for WriteError {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Database(error) => Self::Database(error),
            ApplyError::Vault(error) => Self::Vault(error),
            // A caller that blames an event finds out which one before an error gets here.
            ApplyError::Refused(reason) => Self::Database(sqlx::Error::Protocol(reason)),
        }
    }
}

/// Why a feed does not continue; it is retried after a while whatever the reason.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FeedError {
    #[error("unexpected answer from the database")]
    Database(#[from] sqlx::Error),
    #[error(transparent)]
    Write(WriteError),
    #[error("the event log does not answer")]
    Read(#[from] ReadError),
    #[error(transparent)]
    Hole(TailError),
    #[error("reading ahead has ended")]
    Reader,
    #[error("another projector may be active")]
    LeadershipLost,
    #[error(
        "{name} was built from another epoch of the log ({built}, now {now}): the log was \
         restored, so the projection has to be rebuilt"
    )]
    OtherEpoch { name: String, built: i64, now: u32 },
    #[error("{name} cannot go on: {went_back}; or rebuild it from what is left")]
    WentBack { name: String, went_back: WentBack },
}

impl FeedError {
    /// Whether the error persists until an operator intervenes.
    pub(crate) fn is_grave(&self) -> bool {
        matches!(
            self,
            Self::Hole(_) | Self::OtherEpoch { .. } | Self::WentBack { .. }
        )
    }
}

impl From<WriteError> for FeedError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Database(error) => Self::Database(error),
            error @ (WriteError::Overtaken | WriteError::Vault(_)) => Self::Write(error),
        }
    }
}

impl From<ReaderError> for FeedError {
    fn from(error: ReaderError) -> Self {
        match error {
            ReaderError::Tail(error) => Self::Hole(error),
            ReaderError::Ended => Self::Reader,
        }
    }
}

/// Why a projection could not be rebuilt, checked or repaired.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// No projection has this name; the second field lists those that exist.
    #[error("unknown projection {0}; available: {1}")]
    Unknown(String, String),
    /// Another process fills the same copy.
    #[error(
        "{0} is already being rebuilt or verified: only one of each at a time; one whose process \
         was just ended is given up within seconds"
    )]
    UnderWay(String),
    /// It was asked to stop.
    #[error("stopped; progress is kept, and the next start continues from there")]
    Stopped,
    /// The projection was not folded from this log, so there is nothing to compare.
    #[error("{0}")]
    Unfit(String),
    /// There is no such event among those that were put aside.
    #[error("{0}")]
    Letter(String),
    /// The database does not answer as it should.
    #[error("unexpected answer from the database: {0}")]
    Database(#[from] sqlx::Error),
    /// The log does not answer.
    #[error(transparent)]
    Log(#[from] ReadError),
    /// Sealed data cannot be opened for now.
    #[error(transparent)]
    Vault(VaultError),
    /// The log cannot be folded.
    #[error("{0}")]
    Fold(String),
}

impl RepairError {
    /// Whether a retry may succeed a moment later.
    pub(crate) fn passes(&self) -> bool {
        match self {
            Self::Log(error) => error.passes(),
            Self::Vault(error) => error.passes(),
            _ => false,
        }
    }
}

impl From<FeedError> for RepairError {
    fn from(error: FeedError) -> Self {
        match error {
            FeedError::Database(error) => Self::Database(error),
            FeedError::Read(error) => Self::Log(error),
            FeedError::Write(WriteError::Vault(error)) => Self::Vault(error),
            error => Self::Fold(error.to_string()),
        }
    }
}

impl From<WriteError> for RepairError {
    fn from(error: WriteError) -> Self {
        FeedError::from(error).into()
    }
}
