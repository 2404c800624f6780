//! How the log is reached and kept.

use std::time::Duration;

/// Where the log is and how long its streams live.
#[derive(Clone, Debug, clap::Args)]
pub struct LogSettings {
    /// NATS server or servers, comma-separated; may contain user and password.
    #[arg(
        long,
        env = "NATS_URL",
        default_value = "nats://127.0.0.1:4222",
        hide_env_values = true
    )]
    pub nats_url: String,

    /// Connection to the server's system account. Used once at startup to read how durable an
    /// acknowledgement is.
    #[arg(long, env = "WAYPOST_NATS_SYSTEM_URL", hide_env_values = true)]
    pub nats_system_url: Option<String>,

    /// Copies of each stream: 1, or 3 on a cluster.
    #[arg(long, env = "WAYPOST_LOG_REPLICAS", default_value_t = 1)]
    pub log_replicas: usize,

    /// Prefix of every stream and subject, so that several installations can share a server.
    #[arg(long, env = "WAYPOST_LOG_PREFIX", default_value = "")]
    pub log_prefix: String,

    /// How long an append may take, acknowledgement and retries included, in milliseconds.
    #[arg(long, env = "WAYPOST_LOG_TIMEOUT_MS", default_value_t = 1_500)]
    pub log_timeout_ms: u64,

    /// How long an owner's encryption key stays in memory, in milliseconds. After one process has
    /// forgotten a person, the others can read their data for this long at most.
    #[arg(long, env = "WAYPOST_VAULT_CACHE_MS", default_value_t = 30_000)]
    pub vault_cache_ms: u64,

    /// How many days positions are kept.
    #[arg(long, env = "WAYPOST_LOCATIONS_DAYS", default_value_t = 90)]
    pub locations_days: u64,

    /// How many days webhook delivery attempts are kept.
    #[arg(long, env = "WAYPOST_DELIVERIES_DAYS", default_value_t = 30)]
    pub deliveries_days: u64,
}

impl LogSettings {
    /// The defaults for the server at `nats_url`.
    pub fn at(nats_url: impl Into<String>) -> Self {
        Self {
            nats_url: nats_url.into(),
            nats_system_url: None,
            log_replicas: 1,
            log_prefix: String::new(),
            log_timeout_ms: 1_500,
            vault_cache_ms: 30_000,
            locations_days: 90,
            deliveries_days: 30,
        }
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_millis(self.log_timeout_ms)
    }

    pub(crate) fn vault_cache(&self) -> Duration {
        Duration::from_millis(self.vault_cache_ms)
    }
}
