//! Settings of webhook delivery.

use std::time::Duration;

use clap::Args;
use service::settings::{defaults, seconds};

/// How webhooks are delivered.
#[derive(Clone, Debug, Args)]
pub struct WebhookSettings {
    /// Waits between the attempts of one delivery, in seconds.
    #[arg(id = "webhook_retry_seconds", long, env = "WAYPOST_WEBHOOK_RETRY_SECONDS", value_delimiter = ',', default_value = "5,300,1800,7200,18000,36000,50400,72000,86400", value_parser = seconds)]
    pub retries: Vec<Duration>,
    /// How long one delivery attempt may take.
    #[arg(id = "webhook_timeout_seconds", long, env = "WAYPOST_WEBHOOK_TIMEOUT_SECONDS", default_value = "15", value_parser = seconds)]
    pub timeout: Duration,
    /// An endpoint that has only failed for this long is disabled.
    #[arg(id = "webhook_disable_seconds", long, env = "WAYPOST_WEBHOOK_DISABLE_SECONDS", default_value = "432000", value_parser = seconds)]
    pub disable_after: Duration,
    /// Requests to one endpoint at a time.
    #[arg(
        id = "webhook_concurrency",
        long,
        env = "WAYPOST_WEBHOOK_CONCURRENCY",
        default_value_t = 32
    )]
    pub concurrency: usize,
    /// Requests of this process to all endpoints at a time. Organizations share them, and within
    /// each its endpoints.
    #[arg(
        id = "webhook_total_concurrency",
        long,
        env = "WAYPOST_WEBHOOK_TOTAL_CONCURRENCY",
        default_value_t = 512
    )]
    pub total_concurrency: usize,
    /// Deliveries of one endpoint that may wait for a retry. A failing endpoint with this many gets
    /// new events only as probes, and the rest once it answers again. One that answers now and then
    /// may have twice as many.
    #[arg(
        id = "webhook_pending",
        long,
        env = "WAYPOST_WEBHOOK_PENDING",
        default_value_t = 10_000
    )]
    pub pending: usize,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        defaults()
    }
}
