//! The durability of acknowledged events.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::connection;

/// When acknowledged events are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Before they are acknowledged.
    Always,
    /// Within this time after: a power failure loses the latest events.
    Within(Duration),
    /// Not known: the server's settings cannot be read without its system account.
    Unknown,
}

impl Durability {
    /// Logs it, for those who operate the installation.
    pub fn report(self) {
        match self {
            Self::Always => tracing::info!("The log is durable: {self}"),
            Self::Within(_) => tracing::warn!("The log is {self}"),
            Self::Unknown => tracing::warn!("Durability of the log: {self}"),
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => f.write_str("acknowledged events are on disk (sync_interval: always)"),
            Self::Within(interval) => write!(
                f,
                "NOT DURABLE: acknowledged events reach the disk only within {} s; \
                 set jetstream.sync_interval to always",
                interval.as_secs_f64()
            ),
            Self::Unknown => f.write_str(
                "unknown: set WAYPOST_NATS_SYSTEM_URL to a connection of a system account, or \
                 make sure that the server runs with jetstream.sync_interval: always",
            ),
        }
    }
}

/// The interval of NATS if none is configured.
const SERVER_DEFAULT: Duration = Duration::from_mins(2);

/// Asks the server through its system account.
pub(crate) async fn read(system_url: &str) -> Durability {
    let answer = async {
        let client = connection::open(system_url).await.ok()?;
        let message = client
            .request("$SYS.REQ.SERVER.PING.VARZ", "".into())
            .await
            .ok()?;
        serde_json::from_slice::<Value>(&message.payload).ok()
    };
    match tokio::time::timeout(Duration::from_secs(5), answer).await {
        Ok(Some(varz)) => judge(&varz["data"]["jetstream"]["config"]),
        _ => Durability::Unknown,
    }
}

fn judge(config: &Value) -> Durability {
    if config["sync_always"] == Value::Bool(true) {
        return Durability::Always;
    }
    match config["sync_interval"].as_u64() {
        Some(nanoseconds) => Durability::Within(Duration::from_nanos(nanoseconds)),
        None if config.is_object() => Durability::Within(SERVER_DEFAULT),
        None => Durability::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_server_that_always_syncs_is_called_durable() {
        assert_eq!(judge(&json!({"sync_always": true})), Durability::Always);
        let within = Durability::Within(Duration::from_secs(1));
        assert_eq!(judge(&json!({"sync_interval": 1_000_000_000})), within);
        assert_eq!(judge(&json!({})), Durability::Within(SERVER_DEFAULT));
        assert_eq!(judge(&Value::Null), Durability::Unknown);
    }
}
