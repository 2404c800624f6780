//! Settings of sockets.

use std::time::Duration;

use clap::Args;
use service::settings::{defaults, seconds};

/// How sockets are held.
#[derive(Clone, Debug, Args)]
pub struct SocketSettings {
    /// How long a client may take to send its token.
    #[arg(id = "ws_auth_seconds", long, env = "WAYPOST_WS_AUTH_SECONDS", default_value = "10", value_parser = seconds)]
    pub auth_timeout: Duration,
    /// How often clients are pinged. One that sends and takes nothing for two and a half times as
    /// long is dropped.
    #[arg(id = "ws_ping_seconds", long, env = "WAYPOST_WS_PING_SECONDS", default_value = "20", value_parser = seconds)]
    pub ping_interval: Duration,
    /// Sockets of one process.
    #[arg(
        id = "ws_connections",
        long,
        env = "WAYPOST_WS_CONNECTIONS",
        default_value_t = 20_000
    )]
    pub max_connections: usize,
    /// Memory for the newest positions, in bytes. What was dropped is read from the log again.
    #[arg(
        id = "ws_latest_bytes",
        long,
        env = "WAYPOST_WS_LATEST_BYTES",
        default_value_t = 64 * 1024 * 1024
    )]
    pub latest_bytes: usize,
}

impl Default for SocketSettings {
    fn default() -> Self {
        defaults()
    }
}
