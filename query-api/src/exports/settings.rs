//! Settings of exports.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use service::settings::seconds;

/// How many exports there may be at a time, and how patient they are.
#[derive(Clone, Debug, Args)]
pub struct ExportSettings {
    /// Exports that read from the database at a time, each over a connection of its own. Further
    /// ones wait.
    #[arg(
        id = "export_streams",
        long,
        env = "WAYPOST_EXPORT_STREAMS",
        default_value_t = 8
    )]
    pub streams: usize,
    /// Excel and PDF files written at a time, each by a thread of its own. Further ones wait.
    #[arg(
        id = "export_documents",
        long,
        env = "WAYPOST_EXPORT_DOCUMENTS",
        default_value_t = 2
    )]
    pub documents: usize,
    /// How long an export waits for its turn.
    #[arg(
        id = "export_wait_seconds",
        long,
        env = "WAYPOST_EXPORT_WAIT_SECONDS",
        default_value = "120",
        value_parser = seconds
    )]
    pub wait: Duration,
    /// How long an export waits for a client that takes nothing, before it is cut off.
    #[arg(
        id = "export_stall_seconds",
        long,
        env = "WAYPOST_EXPORT_STALL_SECONDS",
        default_value = "60",
        value_parser = seconds
    )]
    pub stall: Duration,
    /// Lowest rate at which an export's client must read while it is waited for, in bytes a second.
    #[arg(
        id = "export_bytes_per_second",
        long,
        env = "WAYPOST_EXPORT_BYTES_PER_SECOND",
        default_value_t = 8_192,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub least_rate: u32,
    /// How long an export may take from the request to the last byte.
    #[arg(
        id = "export_seconds",
        long,
        env = "WAYPOST_EXPORT_SECONDS",
        default_value = "3600",
        value_parser = seconds
    )]
    pub deadline: Duration,
    /// How long the rows of a CSV wait for their client, all waits together, before the rest goes
    /// to a temporary file, so that the database does not wait.
    #[arg(
        id = "export_lag_seconds",
        long,
        env = "WAYPOST_EXPORT_LAG_SECONDS",
        default_value = "5",
        value_parser = seconds
    )]
    pub lag: Duration,
    /// Temporary files of exports at a time. Organizations share them: one gets half at most while
    /// nobody else wants any.
    #[arg(
        id = "export_files",
        long,
        env = "WAYPOST_EXPORT_FILES",
        default_value_t = 64
    )]
    pub files: usize,
    /// Total size of exports' temporary files, in bytes. Organizations share it as they share the
    /// files.
    #[arg(
        id = "export_file_bytes",
        long,
        env = "WAYPOST_EXPORT_FILE_BYTES",
        default_value_t = 8 * 1024 * 1024 * 1024
    )]
    pub file_bytes: u64,
    /// Folders whose fonts show in PDF what the built-in ones have no characters for, separated by
    /// colons.
    #[arg(
        id = "export_fonts",
        long,
        env = "WAYPOST_EXPORT_FONTS",
        value_delimiter = ':',
        default_value = "/usr/share/fonts:/usr/local/share/fonts"
    )]
    pub fonts: Vec<PathBuf>,
}
