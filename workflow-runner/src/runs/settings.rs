//! How runs are carried out.

use std::time::Duration;

use clap::Args;
use service::settings::seconds;

/// What templates and expressions may cost.
#[derive(Clone, Debug, Args)]
pub struct TemplateSettings {
    /// What one step's templates, or one filter or match on an event, may cost, in units of about
    /// a byte that is read, compared or copied: `WAYPOST_TEMPLATE_WORK`, 16777216.
    #[arg(
        id = "template_work",
        long,
        env = "WAYPOST_TEMPLATE_WORK",
        default_value_t = 16 * 1024 * 1024
    )]
    pub work: u64,
    /// How long one evaluation may take besides: `WAYPOST_TEMPLATE_SECONDS`, 10.
    #[arg(id = "template_seconds", long, env = "WAYPOST_TEMPLATE_SECONDS", default_value = "10", value_parser = seconds)]
    pub patience: Duration,
    /// Threads of one process that evaluate what is more than a trifle; organizations share them:
    /// `WAYPOST_TEMPLATE_THREADS`, half as many as there are processors.
    #[arg(id = "template_threads", long, env = "WAYPOST_TEMPLATE_THREADS")]
    pub threads: Option<usize>,
    /// What compiled templates may take up in the memory of one process, in MiB:
    /// `WAYPOST_TEMPLATE_CACHE_MIB`, 64.
    #[arg(
        id = "template_cache_mib",
        long,
        env = "WAYPOST_TEMPLATE_CACHE_MIB",
        default_value_t = 64
    )]
    pub cache_mib: usize,
}

impl Default for TemplateSettings {
    fn default() -> Self {
        Self {
            work: 16 * 1024 * 1024,
            patience: Duration::from_secs(10),
            threads: None,
            cache_mib: 64,
        }
    }
}

impl TemplateSettings {
    /// Threads that evaluate; half of the processors stay for everything else.
    pub(super) fn threads(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or_else(|| processors() / 2).max(1)
    }
}

/// How runs are carried out.
#[derive(Clone, Debug, Args)]
pub struct RunSettings {
    /// Runs that one process works on at the same time; those that wait, for a time or for an
    /// answer, do not count: `WAYPOST_RUNS_CONCURRENCY`, 512. Organizations share them.
    #[arg(
        id = "runs_concurrency",
        long,
        env = "WAYPOST_RUNS_CONCURRENCY",
        default_value_t = 512
    )]
    pub concurrency: usize,
    /// Of runs that events began, one process works on so many at the same time, besides: what
    /// workflows set off in each other must not slow what somebody waits for:
    /// `WAYPOST_RUNS_EVENT_CONCURRENCY`, 16. Organizations share them.
    #[arg(
        id = "runs_event_concurrency",
        long,
        env = "WAYPOST_RUNS_EVENT_CONCURRENCY",
        default_value_t = 16
    )]
    pub event_concurrency: usize,
    /// HTTP calls of steps that are under way in one process; further ones wait:
    /// `WAYPOST_RUNS_CALLS`, 4096. Organizations share them.
    #[arg(
        id = "runs_calls",
        long,
        env = "WAYPOST_RUNS_CALLS",
        default_value_t = 4_096
    )]
    pub calls: usize,
    /// What runs that wait for answers may hold in memory in one process, in MiB; beyond, an
    /// organization that holds much of it begins no further runs until some have ended:
    /// `WAYPOST_RUNS_MEMORY_MIB`, 256.
    #[arg(
        id = "runs_memory_mib",
        long,
        env = "WAYPOST_RUNS_MEMORY_MIB",
        default_value_t = 256
    )]
    pub memory_mib: usize,
    /// Runs that one event or run from outside may lead to by what the runs in between do; beyond,
    /// nothing more is set off, and `workflow.not_triggered` tells of it:
    /// `WAYPOST_TRIGGERS_PER_CAUSE`, 1000.
    #[arg(
        id = "triggers_per_cause",
        long,
        env = "WAYPOST_TRIGGERS_PER_CAUSE",
        default_value_t = 1_000
    )]
    pub caused_runs: u32,
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
            event_concurrency: 16,
            calls: 4_096,
            memory_mib: 256,
            caused_runs: 1_000,
            lease: Duration::from_secs(3),
            checkpoint: Duration::from_secs(3),
            shutdown: Duration::from_secs(5),
        }
    }
}
