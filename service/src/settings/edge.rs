//! Limits on the connections of one client, and of all together.

use std::time::Duration;

use clap::Args;

use super::{Secret, defaults, seconds};
use crate::client::Networks;

/// How connections are served.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct EdgeSettings {
    /// Open connections of one process, sockets included; fewer (with a warning in the log) if the
    /// process may not open a third more files than that. A further one takes the place of one that
    /// is idle; where none is, it is answered 503.
    #[arg(long, env = "WAYPOST_CONNECTIONS", default_value_t = 20_000)]
    pub connections: usize,
    /// Open connections of one client address (an IPv6 /64 counts as one), and never more than are
    /// still free. Trusted proxies and the machine itself are not counted.
    #[arg(long, env = "WAYPOST_CONNECTIONS_PER_ADDRESS", default_value_t = 2_000)]
    pub connections_per_address: usize,
    /// How long a connection has been idle before it gives its place to a new one, where all places
    /// are taken. The longest idle of the address with the most goes first.
    #[arg(
        id = "shed-idle-seconds",
        long,
        env = "WAYPOST_SHED_IDLE_SECONDS",
        default_value = "1",
        value_parser = seconds
    )]
    pub shed_idle: Duration,
    /// How long a new connection may be silent. Clients and proxies open connections in advance, and
    /// lose the request that meets the end of one.
    #[arg(
        id = "silent-seconds",
        long,
        env = "WAYPOST_SILENT_SECONDS",
        default_value = "60",
        value_parser = seconds
    )]
    pub silent: Duration,
    /// How long a request's head may take, from its first byte.
    #[arg(
        id = "head-seconds",
        long,
        env = "WAYPOST_HEAD_SECONDS",
        default_value = "15",
        value_parser = seconds
    )]
    pub head: Duration,
    /// Largest request head, in bytes; a larger one is answered 431.
    #[arg(long, env = "WAYPOST_HEAD_BYTES", default_value_t = 32 * 1024)]
    pub head_bytes: usize,
    /// How long a connection without a request is kept. Longer than proxies keep theirs (Caddy 120,
    /// nginx and many others 60), so that the proxy closes first.
    #[arg(
        id = "idle-seconds",
        long,
        env = "WAYPOST_IDLE_SECONDS",
        default_value = "180",
        value_parser = seconds
    )]
    pub idle: Duration,
    /// How long a body may keep its reader waiting beyond what `WAYPOST_BODY_BYTES_PER_SECOND`
    /// allows, before the request is answered 408 (400 on the trigger) and the connection closes;
    /// also how long an unread body is waited for.
    #[arg(
        id = "body-seconds",
        long,
        env = "WAYPOST_BODY_SECONDS",
        default_value = "30",
        value_parser = seconds
    )]
    pub body: Duration,
    /// Lowest rate at which a body must arrive, in bytes a second.
    #[arg(
        long,
        env = "WAYPOST_BODY_BYTES_PER_SECOND",
        default_value_t = 500,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub body_bytes_per_second: u32,
    /// Bytes of request bodies that one process holds in memory. One client gets a fifth at most,
    /// and less the fewer are free; beyond that it is answered 503 with `Retry-After` (500 on the
    /// trigger).
    #[arg(long, env = "WAYPOST_BODY_MEMORY_BYTES", default_value_t = 256 * 1024 * 1024)]
    pub body_memory_bytes: usize,
    /// Longest rest of a body that is read and discarded after an early answer, so that the
    /// connection stays usable. With a longer rest the answer says `Connection: close`.
    #[arg(long, env = "WAYPOST_DRAIN_BYTES", default_value_t = 1024 * 1024)]
    pub drain_bytes: u64,
    /// How long a client may read nothing of an answer that is ready. One that reads a little now
    /// and then has five times as long.
    #[arg(
        id = "unread-seconds",
        long,
        env = "WAYPOST_UNREAD_SECONDS",
        default_value = "60",
        value_parser = seconds
    )]
    pub unread: Duration,
    /// Proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed: addresses or ranges,
    /// separated by commas or spaces.
    #[arg(long, env = "WAYPOST_TRUSTED_PROXIES", default_value = "")]
    pub trusted_proxies: Networks,
    /// Token that `GET /metrics` asks for (`Authorization: Bearer …`); without one, anybody who
    /// reaches this address can read the metrics.
    #[arg(
        id = "metrics-token",
        long,
        env = "WAYPOST_METRICS_TOKEN",
        hide_env_values = true
    )]
    pub metrics_token: Option<Secret<String>>,
}

impl Default for EdgeSettings {
    fn default() -> Self {
        defaults()
    }
}
