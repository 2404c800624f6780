//! How the log is reached and kept.

use std::time::Duration;

/// Where NATS listens unless configured otherwise.
const LOCAL_NATS: &str = "nats://127.0.0.1:4222";
const TIMEOUT_MS: u64 = 1_500;
const SLOW_MS: u64 = 3;
const LEAST_MESSAGES: u64 = 500;
const VAULT_CACHE_MS: u64 = 30_000;
const FOLD_EVENTS: u64 = 50_000;
const LOCATIONS_DAYS: u64 = 90;
const DELIVERIES_DAYS: u64 = 30;

/// Where the log is and how long its streams live.
#[derive(Clone, Debug, clap::Args)]
pub struct LogSettings {
    /// NATS server or servers, comma-separated; may contain user and password. Default: the server
    /// that `waypost up` keeps; for a service alone, `nats://127.0.0.1:4222`.
    #[arg(long, env = "NATS_URL", hide_env_values = true)]
    pub nats_url: Option<String>,

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

    /// How long an append may take, acknowledgement and retries included, and how long a read of a
    /// command waits for an answer, in milliseconds.
    #[arg(long, env = "WAYPOST_LOG_TIMEOUT_MS", default_value_t = TIMEOUT_MS)]
    pub log_timeout_ms: u64,

    /// How long the log may take to acknowledge before it counts as slow, in milliseconds. While it
    /// is slow, organizations that write or read much are held back for those that do little. 0
    /// holds nobody back.
    #[arg(long, env = "WAYPOST_LOG_SLOW_MS", default_value_t = SLOW_MS)]
    pub log_slow_ms: u64,

    /// Messages of up to 8 KiB a second that an organization may write however slow the log is. For
    /// each of them it may read 1 KiB.
    #[arg(
        long,
        env = "WAYPOST_LOG_LEAST_MESSAGES",
        default_value_t = LEAST_MESSAGES,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub log_least_messages: u64,

    /// How long an owner's encryption key stays in memory, in milliseconds. After one process has
    /// forgotten a person, the others can read their data for this long at most.
    #[arg(long, env = "WAYPOST_VAULT_CACHE_MS", default_value_t = VAULT_CACHE_MS)]
    pub vault_cache_ms: u64,

    /// After how many events of accounts and circles a process notes what it knows of them, so that
    /// the next to start need not read them; later where there is much to write.
    #[arg(
        long,
        env = "WAYPOST_FOLD_EVENTS",
        default_value_t = FOLD_EVENTS,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub fold_events: u64,

    /// How many days positions are kept.
    #[arg(long, env = "WAYPOST_LOCATIONS_DAYS", default_value_t = LOCATIONS_DAYS)]
    pub locations_days: u64,

    /// How many days webhook delivery attempts are kept.
    #[arg(long, env = "WAYPOST_DELIVERIES_DAYS", default_value_t = DELIVERIES_DAYS)]
    pub deliveries_days: u64,
}

impl LogSettings {
    /// The defaults for the server at `nats_url`.
    pub fn at(nats_url: impl Into<String>) -> Self {
        Self {
            nats_url: Some(nats_url.into()),
            nats_system_url: None,
            log_replicas: 1,
            log_prefix: String::new(),
            log_timeout_ms: TIMEOUT_MS,
            log_slow_ms: SLOW_MS,
            log_least_messages: LEAST_MESSAGES,
            vault_cache_ms: VAULT_CACHE_MS,
            fold_events: FOLD_EVENTS,
            locations_days: LOCATIONS_DAYS,
            deliveries_days: DELIVERIES_DAYS,
        }
    }

    /// The configured address of NATS. A variable that is set to nothing counts as not set.
    pub fn given_nats_url(&self) -> Option<&str> {
        self.nats_url.as_deref().filter(|url| !url.is_empty())
    }

    /// The address of NATS.
    pub fn nats_url(&self) -> &str {
        self.given_nats_url().unwrap_or(LOCAL_NATS)
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_millis(self.log_timeout_ms)
    }

    /// The timeout of each of `count` appends of one organization that is held back, and of a read
    /// of what they would follow.
    pub(crate) fn timeout_of_each(&self, count: usize) -> Duration {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let held = count.saturating_mul(1_000) / self.log_least_messages.max(1);
        self.timeout() + Duration::from_millis(held)
    }

    pub(crate) fn vault_cache(&self) -> Duration {
        Duration::from_millis(self.vault_cache_ms)
    }
}
