//! Limits on the runs of an organization.

use clap::Args;

use super::defaults;

/// How many runs may be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub struct OpenRunSettings {
    /// Runs of one organization that may be open (queued, running or waiting) at a time, about.
    /// Beyond it a trigger is answered 409, and what an event would have triggered is reported as
    /// `workflow.not_triggered`.
    #[arg(
        id = "open_runs_per_organization",
        long = "open-runs-per-organization",
        env = "WAYPOST_OPEN_RUNS_PER_ORGANIZATION",
        default_value_t = 250_000,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub per_organization: u32,
}

impl Default for OpenRunSettings {
    fn default() -> Self {
        defaults()
    }
}
