//! Settings of runs.

use std::time::Duration;

use background::processors;
use clap::Args;
use service::settings::{OpenRunSettings, defaults, seconds};

/// What templates and expressions may cost.
#[derive(Clone, Debug, Args)]
pub struct TemplateSettings {
    /// What one step's templates, or one filter or match on an event, may cost: units of about one
    /// byte read, compared or copied.
    #[arg(
        id = "template_work",
        long,
        env = "WAYPOST_TEMPLATE_WORK",
        default_value_t = 16 * 1024 * 1024
    )]
    pub work: u64,
    /// How long one evaluation of templates may take.
    #[arg(id = "template_seconds", long, env = "WAYPOST_TEMPLATE_SECONDS", default_value = "10", value_parser = seconds)]
    pub timeout: Duration,
    /// Threads of one process that evaluate larger templates; organizations share them. Default:
    /// half the processors.
    #[arg(id = "template_threads", long, env = "WAYPOST_TEMPLATE_THREADS")]
    pub threads: Option<usize>,
    /// Memory for compiled templates in one process, in MiB.
    #[arg(
        id = "template_cache_mib",
        long,
        env = "WAYPOST_TEMPLATE_CACHE_MIB",
        default_value_t = 128
    )]
    pub cache_mib: usize,
}

impl Default for TemplateSettings {
    fn default() -> Self {
        defaults()
    }
}

impl TemplateSettings {
    /// Threads that evaluate; half of the processors stay for everything else.
    pub(super) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| processors() / 2).max(1)
    }
}

/// How runs are carried out.
#[derive(Clone, Debug, Args)]
pub struct RunSettings {
    /// Runs that one process works on at a time. Runs that wait for a time or an answer do not
    /// count. Organizations share them.
    #[arg(
        id = "runs_concurrency",
        long,
        env = "WAYPOST_RUNS_CONCURRENCY",
        default_value_t = 1_024
    )]
    pub concurrency: usize,
    /// Runs started by events that one process works on at a time, besides
    /// `WAYPOST_RUNS_CONCURRENCY`. Organizations share them.
    #[arg(
        id = "runs_event_concurrency",
        long,
        env = "WAYPOST_RUNS_EVENT_CONCURRENCY",
        default_value_t = 16
    )]
    pub event_concurrency: usize,
    /// HTTP calls of steps in progress in one process. Further ones wait; organizations share them.
    #[arg(
        id = "runs_calls",
        long,
        env = "WAYPOST_RUNS_CALLS",
        default_value_t = 4_096
    )]
    pub calls: usize,
    /// Memory that runs waiting for answers may hold in one process, in MiB. Beyond it, an
    /// organization that holds much of it starts no further runs until some have ended.
    #[arg(
        id = "runs_memory_mib",
        long,
        env = "WAYPOST_RUNS_MEMORY_MIB",
        default_value_t = 256
    )]
    pub memory_mib: usize,
    /// Runs that one event or external run may lead to through what the runs in between do. Beyond
    /// it nothing more is triggered, and `workflow.not_triggered` says so.
    #[arg(
        id = "triggers_per_cause",
        long,
        env = "WAYPOST_TRIGGERS_PER_CAUSE",
        default_value_t = 1_000
    )]
    pub caused_runs: u32,
    /// How many runs may be open.
    #[command(flatten)]
    pub open: OpenRunSettings,
    /// A process without a sign of life for this long loses its work to others: runs, triggers,
    /// webhooks and geofences.
    #[arg(id = "lease_seconds", long, env = "WAYPOST_LEASE_SECONDS", default_value = "3", value_parser = seconds)]
    pub lease: Duration,
    /// How often checkpoints of open runs and matched events are saved, so that a restart does not
    /// read the whole log.
    #[arg(id = "runs_checkpoint_seconds", long, env = "WAYPOST_RUNS_CHECKPOINT_SECONDS", default_value = "3", value_parser = seconds)]
    pub checkpoint: Duration,
    /// How long steps in progress may take to finish at shutdown.
    #[arg(id = "runs_shutdown_seconds", long, env = "WAYPOST_RUNS_SHUTDOWN_SECONDS", default_value = "5", value_parser = seconds)]
    pub shutdown: Duration,
}

impl Default for RunSettings {
    fn default() -> Self {
        defaults()
    }
}
