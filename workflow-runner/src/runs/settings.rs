//! How runs are carried out.

use std::time::Duration;

use clap::Args;
use service::settings::seconds;

/// How runs are carried out.
#[derive(Clone, Debug, Args)]
pub struct RunSettings {
    /// Runs that one process carries out at the same time; waiting ones do not count:
    /// `WAYPOST_RUNS_CONCURRENCY`, 512. One organization gets at most half of these.
    #[arg(
        id = "runs_concurrency",
        long,
        env = "WAYPOST_RUNS_CONCURRENCY",
        default_value_t = 512
    )]
    pub concurrency: usize,
    /// A process without a sign of life for so long loses its runs to others:
    /// `WAYPOST_LEASE_SECONDS`, 3.
    #[arg(id = "lease_seconds", long, env = "WAYPOST_LEASE_SECONDS", default_value = "3", value_parser = seconds)]
    pub lease: Duration,
    /// How often it is noted which runs are open and which events have been judged, so that a
    /// restart need not read the whole log: `WAYPOST_RUNS_CHECKPOINT_SECONDS`, 3.
    #[arg(id = "runs_checkpoint_seconds", long, env = "WAYPOST_RUNS_CHECKPOINT_SECONDS", default_value = "3", value_parser = seconds)]
    pub checkpoint: Duration,
    /// How long steps under way may take to end at shutdown: `WAYPOST_RUNS_SHUTDOWN_SECONDS`, 5.
    #[arg(id = "runs_shutdown_seconds", long, env = "WAYPOST_RUNS_SHUTDOWN_SECONDS", default_value = "5", value_parser = seconds)]
    pub shutdown: Duration,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self {
            concurrency: 512,
            lease: Duration::from_secs(3),
            checkpoint: Duration::from_secs(3),
            shutdown: Duration::from_secs(5),
        }
    }
}
