//! Settings, parsed at start-up from arguments and environment variables.
//!
//! Every program flattens the structs that it needs into its own `clap::Parser`, which it reads
//! with [`parse`]: the value of `<VARIABLE>` may also be in the file named by `<VARIABLE>_FILE`.

mod edge;
mod files;
mod runs;
mod secret;
mod traces;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Command, ValueEnum};

pub use edge::EdgeSettings;
pub use files::parse;
pub use runs::OpenRunSettings;
pub use secret::Secret;
pub use traces::TraceSettings;

/// A required setting is missing.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{variable} is not set: {purpose}")]
pub struct MissingSetting {
    /// The variable.
    pub variable: &'static str,
    /// What it is for.
    pub purpose: &'static str,
}

/// What every program has.
#[derive(Clone, Debug, Args)]
pub struct CommonSettings {
    /// Folder of the secrets, the outbox and the private servers.
    #[arg(long, env = "WAYPOST_HOME", default_value = ".waypost", global = true)]
    pub home: PathBuf,
    /// What is logged, such as `info,projector=debug`.
    #[arg(
        long,
        env = "WAYPOST_LOG",
        default_value = "info,sqlx=error,async_nats=warn",
        global = true
    )]
    pub log: String,
    /// `text`, `json`, or `auto`: text on a terminal, JSON elsewhere.
    #[arg(
        long,
        env = "WAYPOST_LOG_FORMAT",
        default_value = "auto",
        global = true
    )]
    pub log_format: LogFormat,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    Auto,
    /// Text for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Where a service listens, and how it serves.
#[derive(Clone, Debug, Args)]
pub struct HttpSettings {
    /// Address to listen on.
    #[arg(long, env = "WAYPOST_ADDR", default_value = "127.0.0.1:8080")]
    pub addr: SocketAddr,
    /// How long requests in progress may take to finish at shutdown.
    #[arg(long, env = "WAYPOST_SHUTDOWN_SECONDS", default_value = "10", value_parser = seconds)]
    pub shutdown: Duration,
    /// What may be taken over connections.
    #[command(flatten)]
    pub edge: EdgeSettings,
}

/// Where Postgres is and how it is used.
#[derive(Clone, Debug, Args)]
pub struct DatabaseSettings {
    /// Postgres, as the role that writes.
    #[arg(
        id = "database-url",
        long,
        env = "DATABASE_URL",
        hide_env_values = true
    )]
    pub url: Option<Secret<String>>,
    /// Postgres, as a role that can only read. Default: `DATABASE_URL`, in read-only transactions.
    #[arg(
        id = "read-database-url",
        long,
        env = "WAYPOST_READ_DATABASE_URL",
        hide_env_values = true
    )]
    pub read_url: Option<Secret<String>>,
    /// Connections of one process that may write.
    #[arg(
        id = "database-connections",
        long,
        env = "WAYPOST_DATABASE_CONNECTIONS",
        default_value_t = 12
    )]
    pub connections: u32,
    /// Connections of one process that only read.
    #[arg(
        id = "read-database-connections",
        long,
        env = "WAYPOST_READ_DATABASE_CONNECTIONS",
        default_value_t = 16
    )]
    pub read_connections: u32,
    /// How long to wait for a free connection.
    #[arg(
        id = "database-acquire-seconds",
        long,
        env = "WAYPOST_DATABASE_ACQUIRE_SECONDS",
        default_value = "2",
        value_parser = seconds
    )]
    pub acquire_timeout: Duration,
    /// How long a statement may take. Exports and rebuilds set a limit of their own.
    #[arg(
        id = "database-statement-seconds",
        long,
        env = "WAYPOST_DATABASE_STATEMENT_SECONDS",
        default_value = "10",
        value_parser = seconds
    )]
    pub statement_timeout: Duration,
}

impl DatabaseSettings {
    /// The address of Postgres, or the error that it is missing.
    pub fn required_url(&self) -> Result<&Secret<String>, MissingSetting> {
        given(self.url.as_ref()).ok_or(MissingSetting {
            variable: "DATABASE_URL",
            purpose: "the address of Postgres, such as postgres://user:password@host/waypost",
        })
    }

    /// The address of Postgres for the read-only role, if one is configured.
    pub fn read_url(&self) -> Option<&Secret<String>> {
        given(self.read_url.as_ref())
    }
}

/// A variable set to the empty string counts as not set, as in many a compose file.
fn given(setting: Option<&Secret<String>>) -> Option<&Secret<String>> {
    setting.filter(|value| !value.expose().is_empty())
}

/// Default settings: neither arguments nor the environment are read.
///
/// # Panics
/// If one of them is required.
#[expect(clippy::expect_used, reason = "a programmer's mistake, seen at once")]
pub fn defaults<S: Args>() -> S {
    let nothing_set = S::augment_args(Command::new("defaults"))
        .mut_args(|arg| arg.env(None::<&str>))
        .try_get_matches_from(["defaults"]);
    let settings = nothing_set.and_then(|nothing_set| S::from_arg_matches(&nothing_set));
    settings.expect("settings that need not be set")
}

/// Parses a duration in seconds, optionally with a fraction.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds")?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Args)]
    struct Settings {
        /// Variables that every process has.
        #[arg(long, env = "PATH", default_value = "none")]
        path: String,
        #[arg(long, env = "HOME")]
        home: Option<String>,
        #[command(flatten)]
        edge: EdgeSettings,
    }

    #[test]
    fn defaults_are_as_documented_whatever_the_environment_says() {
        let Settings { path, home, edge } = defaults();
        assert_eq!((path.as_str(), home), ("none", None));
        assert_eq!(edge.connections, 20_000);
        assert_eq!(edge.idle, Duration::from_mins(3));
        assert!(edge.metrics_token.is_none());
    }
}
