//! Errors of backups.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::{Error, ReadError};

/// Why a backup cannot be taken, is not whole, or cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A backup is written to a new or empty folder only.
    #[error("{0} is not empty: a backup needs a folder of its own")]
    NotEmpty(PathBuf),
    /// There is no manifest.
    #[error("{0} does not contain a finished backup")]
    NoBackup(PathBuf),
    /// This program cannot use the manifest.
    #[error("the backup's manifest is wrong: {reason}")]
    Manifest {
        /// Why.
        reason: String,
    },
    /// The backup is not what was written.
    #[error("{stream} {sequence}: {what} (file {file})")]
    Wrong {
        /// The stream.
        stream: &'static str,
        /// The first sequence that has changed.
        sequence: u64,
        /// The file it should be in.
        file: String,
        /// The fault there.
        what: Wrong,
    },
    /// The installation has another master key.
    #[error(
        "the backup was made with another master key: put the one of that time into WAYPOST_HOME \
         as secrets/master.key, or set WAYPOST_MASTER_KEY"
    )]
    OtherKey,
    /// The log has a hole.
    #[error(
        "the log has a gap: {stream} {from} to {to} are missing and were never deleted; a backup \
         must not hide that"
    )]
    Hole {
        /// The stream.
        stream: &'static str,
        /// The first missing sequence.
        from: u64,
        /// The last missing sequence.
        to: u64,
    },
    /// The system to restore into is not empty.
    #[error("{stream} is not empty: a backup is restored into an empty system only")]
    Occupied {
        /// The stream.
        stream: String,
    },
    /// The system to restore into is running.
    #[error(
        "{stream} is in use: stop every service first (after a kill, this takes up to a minute)"
    )]
    InUse {
        /// The stream.
        stream: String,
    },
    /// The server did not do what a restore needs.
    #[error("{stream} cannot be restored: {reason}")]
    Refused {
        /// The stream.
        stream: String,
        /// The reason.
        reason: String,
    },
    /// The log cannot be reached or used.
    #[error(transparent)]
    Log(#[from] Error),
    /// The log does not answer.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// A fault at a place of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The bytes are not those that were written.
    Changed,
    /// A later record is in its place.
    Missing {
        /// The sequence found there.
        found: u64,
    },
    /// An earlier record is in its place.
    Again {
        /// The sequence found there.
        found: u64,
    },
    /// The file ends before it.
    Cut,
    /// The file is gone.
    NoFile,
    /// The end is not the one that the manifest names.
    OtherEnd,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed => write!(f, "the record was changed"),
            Self::Missing { found } => write!(f, "the record is missing, {found} is here instead"),
            Self::Again { found } => write!(f, "the record is missing, {found} is here again"),
            Self::Cut => write!(f, "the file ends here or its record was changed"),
            Self::NoFile => write!(f, "the file is missing"),
            Self::OtherEnd => write!(f, "the end is not the one that the manifest names"),
        }
    }
}
