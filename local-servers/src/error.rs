use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// Why a private server could not be started, used or stopped.
///
/// Every message says what to do next, because its reader is the one who ran `make run`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder of the home could not be created, read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The attempted action, as a verb.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Another process runs this server of this home.
    #[error(
        "the {server} in {} is in use by another process; stop that process, or set WAYPOST_HOME \
         to another folder",
        folder.display()
    )]
    InUse {
        /// Which server.
        server: &'static str,
        /// Its folder.
        folder: PathBuf,
    },
    /// No usable program was found.
    #[error("{program} {version} or newer was not found ({looked}); {advice}")]
    Missing {
        /// The program searched for.
        program: &'static str,
        /// The oldest version that is accepted.
        version: &'static str,
        /// The places searched and what was found instead.
        looked: String,
        /// How to get it.
        advice: &'static str,
    },
    /// The data was created by another account or another version.
    #[error("{} cannot be used: {reason}", folder.display())]
    Unusable {
        /// The folder in question.
        folder: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// A program could not be executed.
    #[error("cannot run {program}: {source}")]
    Spawn {
        /// The program.
        program: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A helper program (initdb and the like) reported a failure.
    #[error("{program} failed:\n{output}")]
    Failed {
        /// The program.
        program: String,
        /// What it printed.
        output: String,
    },
    /// The server exited before it answered.
    #[error("{server} stopped during startup ({status}). Last lines of {}:\n{tail}", log.display())]
    Exited {
        /// Which server.
        server: &'static str,
        /// Its exit status.
        status: ExitStatus,
        /// Its log file.
        log: PathBuf,
        /// The log's last lines.
        tail: String,
    },
    /// The server runs but did not answer in time.
    #[error(
        "{server} did not answer within {} s. Last lines of {}:\n{tail}",
        limit.as_secs(), log.display()
    )]
    NotReady {
        /// Which server.
        server: &'static str,
        /// The time limit.
        limit: Duration,
        /// Its log file.
        log: PathBuf,
        /// The log's last lines.
        tail: String,
    },
    /// The server did not stop when asked and was killed.
    #[error("{server} did not stop within {} s and was killed", limit.as_secs())]
    Killed {
        /// Which server.
        server: &'static str,
        /// The time limit.
        limit: Duration,
    },
    /// No free port was found.
    #[error("no free port was found on 127.0.0.1")]
    NoPort,
    /// A statement to the private Postgres failed.
    #[error("the private Postgres refused: {0}")]
    Database(#[from] sqlx::Error),
}

impl Error {
    /// For `map_err`: a failed file operation with its path.
    pub(crate) fn file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File {
            action,
            path,
            source,
        }
    }

    /// For `map_err`: a program that could not be executed.
    pub(crate) fn spawn(program: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let program = program.into();
        move |source| Self::Spawn { program, source }
    }
}
