//! What one client, and all together, may take of a process over its connections.

use std::time::Duration;

use clap::Args;

use super::seconds;
use crate::client::Networks;

/// How connections are served.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct EdgeSettings {
    /// Connections of this process at a time; fewer where it may not open as many files:
    /// `WAYPOST_CONNECTIONS`, 20000.
    #[arg(long, env = "WAYPOST_CONNECTIONS", default_value_t = CONNECTIONS)]
    pub connections: usize,
    /// Connections of one client address (an IPv6 /64 is one) at a time, and never more than are
    /// still free; trusted proxies and this machine itself are not counted:
    /// `WAYPOST_CONNECTIONS_PER_ADDRESS`, 2000.
    #[arg(long, env = "WAYPOST_CONNECTIONS_PER_ADDRESS", default_value_t = PER_ADDRESS)]
    pub connections_per_address: usize,
    /// How long a request's head may take, and a new connection may be silent:
    /// `WAYPOST_HEAD_SECONDS`, 15.
    #[arg(
        id = "head-seconds",
        long,
        env = "WAYPOST_HEAD_SECONDS",
        default_value = "15",
        value_parser = seconds
    )]
    pub head: Duration,
    /// The largest head of a request in bytes: `WAYPOST_HEAD_BYTES`, 32768.
    #[arg(long, env = "WAYPOST_HEAD_BYTES", default_value_t = HEAD_BYTES)]
    pub head_bytes: usize,
    /// How long a connection is kept without a request under way. Longer than proxies keep
    /// theirs, so that these let go first: `WAYPOST_IDLE_SECONDS`, 180.
    #[arg(
        id = "idle-seconds",
        long,
        env = "WAYPOST_IDLE_SECONDS",
        default_value = "180",
        value_parser = seconds
    )]
    pub idle: Duration,
    /// How long a body may keep its reader waiting beyond what `WAYPOST_BODY_BYTES_PER_SECOND`
    /// allows, and how long an unread one is waited for: `WAYPOST_BODY_SECONDS`, 30.
    #[arg(
        id = "body-seconds",
        long,
        env = "WAYPOST_BODY_SECONDS",
        default_value = "30",
        value_parser = seconds
    )]
    pub body: Duration,
    /// The rate that a body has to keep up while it is waited for, in bytes a second:
    /// `WAYPOST_BODY_BYTES_PER_SECOND`, 500.
    #[arg(
        long,
        env = "WAYPOST_BODY_BYTES_PER_SECOND",
        default_value_t = BODY_RATE,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub body_bytes_per_second: u32,
    /// Bytes of bodies that this process holds in memory at a time, of which one client gets a
    /// fifth at most, and the less the fewer are free: `WAYPOST_BODY_MEMORY_BYTES`, 268435456.
    #[arg(long, env = "WAYPOST_BODY_MEMORY_BYTES", default_value_t = BODY_MEMORY)]
    pub body_memory_bytes: usize,
    /// The largest rest of a body that is read and thrown away after an early answer, so that the
    /// connection can be used again; with a longer one the answer says that it closes:
    /// `WAYPOST_DRAIN_BYTES`, 1048576.
    #[arg(long, env = "WAYPOST_DRAIN_BYTES", default_value_t = DRAIN_BYTES)]
    pub drain_bytes: u64,
    /// How long a client may take nothing of an answer that waits for it:
    /// `WAYPOST_UNREAD_SECONDS`, 60.
    #[arg(
        id = "unread-seconds",
        long,
        env = "WAYPOST_UNREAD_SECONDS",
        default_value = "60",
        value_parser = seconds
    )]
    pub unread: Duration,
    /// Proxies whose `X-Forwarded-For` is believed, addresses or ranges with commas or spaces
    /// between: `WAYPOST_TRUSTED_PROXIES`, none.
    #[arg(long, env = "WAYPOST_TRUSTED_PROXIES", default_value = "")]
    pub trusted_proxies: Networks,
}

const CONNECTIONS: usize = 20_000;
const PER_ADDRESS: usize = 2_000;
const HEAD_BYTES: usize = 32 * 1024;
const BODY_RATE: u32 = 500;
const BODY_MEMORY: usize = 256 * 1024 * 1024;
const DRAIN_BYTES: u64 = 1024 * 1024;

impl Default for EdgeSettings {
    fn default() -> Self {
        Self {
            connections: CONNECTIONS,
            connections_per_address: PER_ADDRESS,
            head: Duration::from_secs(15),
            head_bytes: HEAD_BYTES,
            idle: Duration::from_mins(3),
            body: Duration::from_secs(30),
            body_bytes_per_second: BODY_RATE,
            body_memory_bytes: BODY_MEMORY,
            drain_bytes: DRAIN_BYTES,
            unread: Duration::from_mins(1),
            trusted_proxies: Networks::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        edge: EdgeSettings,
    }

    #[test]
    fn what_is_not_set_is_as_documented() {
        let parsed = Program::try_parse_from(["program"]).unwrap();
        assert_eq!(parsed.edge, EdgeSettings::default());
    }
}
