//! The real log, for tests of what cannot be seen by HTTP.

use event_log::{EventLog, Keyring, LogSettings};

/// Connects as a process of its own. All tests share the log, so each uses ids of its own.
pub(crate) async fn connect() -> EventLog {
    let url = std::env::var("NATS_URL").unwrap_or_else(|_| "nats://127.0.0.1:4222".to_owned());
    let settings = LogSettings {
        log_prefix: "commandunits".to_owned(),
        ..LogSettings::at(url)
    };
    EventLog::connect(&settings, Keyring::from_master(&[7; 32]))
        .await
        .unwrap()
}
