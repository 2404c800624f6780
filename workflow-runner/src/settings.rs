//! The settings of the runner's parts together.

use crate::geofence::GeofenceSettings;
use crate::live::SocketSettings;
use crate::runs::{RunSettings, TemplateSettings};
use crate::targets::TargetSettings;
use crate::webhooks::WebhookSettings;

/// How runs are carried out and events are pushed.
#[derive(Clone, Debug, clap::Args)]
pub struct RunnerSettings {
    /// Runs.
    #[command(flatten)]
    pub runs: RunSettings,
    /// Templates of workflows.
    #[command(flatten)]
    pub templates: TemplateSettings,
    /// Webhooks.
    #[command(flatten)]
    pub webhooks: WebhookSettings,
    /// Places.
    #[command(flatten)]
    pub geofence: GeofenceSettings,
    /// Sockets.
    #[command(flatten)]
    pub sockets: SocketSettings,
    /// Calls to the outside.
    #[command(flatten)]
    pub targets: TargetSettings,
}
