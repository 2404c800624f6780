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
}
