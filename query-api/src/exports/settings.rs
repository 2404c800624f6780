//! Settings of exports.

use std::time::Duration;

use clap::Args;
use service::settings::seconds;

/// How many exports there may be at a time, and how patient they are.
#[derive(Clone, Debug, Args)]
pub struct ExportSettings {
    /// Exports that read from the database at a time, each over a connection of its own:
    /// `WAYPOST_EXPORT_STREAMS`, 8. Further ones wait.
    #[arg(
        id = "export_streams",
        long,
        env = "WAYPOST_EXPORT_STREAMS",
        default_value_t = 8
    )]
    pub streams: usize,
    /// Excel and PDF files that are written at a time, each by a thread of its own:
    /// `WAYPOST_EXPORT_DOCUMENTS`, 2. Further ones wait.
    #[arg(
        id = "export_documents",
        long,
        env = "WAYPOST_EXPORT_DOCUMENTS",
        default_value_t = 2
    )]
    pub documents: usize,
    /// How long an export waits for its turn: `WAYPOST_EXPORT_WAIT_SECONDS`, 120.
    #[arg(
        id = "export_wait_seconds",
        long,
        env = "WAYPOST_EXPORT_WAIT_SECONDS",
        default_value = "120",
        value_parser = seconds
    )]
    pub wait: Duration,
    /// How long an export waits for a client that takes nothing, before it breaks off:
    /// `WAYPOST_EXPORT_STALL_SECONDS`, 60.
    #[arg(
        id = "export_stall_seconds",
        long,
        env = "WAYPOST_EXPORT_STALL_SECONDS",
        default_value = "60",
        value_parser = seconds
    )]
    pub stall: Duration,
    /// The bytes a second that an export's client takes at least while it is waited for:
    /// `WAYPOST_EXPORT_BYTES_PER_SECOND`, 8192.
    #[arg(
        id = "export_bytes_per_second",
        long,
        env = "WAYPOST_EXPORT_BYTES_PER_SECOND",
        default_value_t = 8_192,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub least_rate: u32,
    /// How long an export may take from the request to the last byte:
    /// `WAYPOST_EXPORT_SECONDS`, 3600.
    #[arg(
        id = "export_seconds",
        long,
        env = "WAYPOST_EXPORT_SECONDS",
        default_value = "3600",
        value_parser = seconds
    )]
    pub deadline: Duration,
    /// How long the rows of a CSV wait for their client, all waits together, before the rest goes
    /// to a temporary file, so that the database does not wait for it:
    /// `WAYPOST_EXPORT_LAG_SECONDS`, 5.
    #[arg(
        id = "export_lag_seconds",
        long,
        env = "WAYPOST_EXPORT_LAG_SECONDS",
        default_value = "5",
        value_parser = seconds
    )]
    pub lag: Duration,
    /// Temporary files of exports at a time: those that wait to be fetched and the rest of what a
    /// client is slow to take. An organization gets half of them where nobody else wants any:
    /// `WAYPOST_EXPORT_FILES`, 64.
    #[arg(
        id = "export_files",
        long,
        env = "WAYPOST_EXPORT_FILES",
        default_value_t = 64
    )]
    pub files: usize,
    /// The bytes of all these files together, of which an organization gets half likewise:
    /// `WAYPOST_EXPORT_FILE_BYTES`, 8589934592.
    #[arg(
        id = "export_file_bytes",
        long,
        env = "WAYPOST_EXPORT_FILE_BYTES",
        default_value_t = 8 * 1024 * 1024 * 1024
    )]
    pub file_bytes: u64,
}
