//! Settings of the run's services: durations too long to wait for by default.

use event_log::LogSettings;

use crate::servers::Servers;

const SETTINGS: &[(&str, &str)] = &[
    ("WAYPOST_LOG_TIMEOUT_MS", "2500"),
    ("WAYPOST_FOLD_EVENTS", "20"),
    ("WAYPOST_LIMIT_PATIENCE_SECONDS", "1.5"),
    ("WAYPOST_DATABASE_ACQUIRE_SECONDS", "2"),
    // Counts are checked after Postgres was killed.
    ("WAYPOST_LIMIT_FLUSH", "true"),
    ("WAYPOST_LIMIT_WINDOW_SECONDS", "10"),
    ("WAYPOST_RUNS_SHUTDOWN_SECONDS", "1"),
    ("WAYPOST_SHUTDOWN_SECONDS", "2"),
    ("WAYPOST_WS_PING_SECONDS", "2"),
    ("WAYPOST_WEBHOOK_TIMEOUT_SECONDS", "2"),
    (
        "WAYPOST_WEBHOOK_RETRY_SECONDS",
        "0.1,0.2,0.5,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1",
    ),
    ("WAYPOST_SIGN_IN_PER_ADDRESS", "1000000"),
    ("WAYPOST_SIGN_IN_PER_ACCOUNT", "1000000"),
    ("WAYPOST_SIGN_INS_PER_ADDRESS", "1000000"),
    ("WAYPOST_REGISTRATIONS_PER_ADDRESS", "1000000"),
];

/// The settings of services on the given number of NATS servers.
pub(crate) fn of(nats: usize) -> Vec<(&'static str, &'static str)> {
    let mut settings = SETTINGS.to_vec();
    if nats > 1 {
        settings.push(("WAYPOST_LOG_REPLICAS", "3"));
    }
    settings
}

/// Settings with which the checker reads the same log.
pub(crate) fn log(servers: &Servers, nats: usize) -> LogSettings {
    LogSettings {
        log_replicas: if nats > 1 { 3 } else { 1 },
        ..LogSettings::at(servers.urls().nats.unwrap_or_default())
    }
}
