//! Events of a webhook endpoint.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Sealed, WebhookId};

/// Whether an endpoint gets anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// It gets what it subscribed to.
    Enabled,
    /// It gets nothing.
    Disabled,
}

/// An endpoint was made; it starts `ENABLED`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Created {
    /// The endpoint.
    pub id: WebhookId,
    /// Where it listens.
    pub url: String,
    /// Which events it gets, such as `run.*`; empty means all.
    pub events: Vec<String>,
    /// What its owner says of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The signing secret (`whsec_…`), sealed under the organization's key.
    pub secret: Sealed,
}

/// An endpoint was changed; the fields are its whole new state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Updated {
    /// The endpoint.
    pub id: WebhookId,
    /// Where it listens.
    pub url: String,
    /// Which events it gets; empty means all.
    pub events: Vec<String>,
    /// What its owner says of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it gets anything.
    pub status: Status,
}

/// An endpoint was switched off because it only fails.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disabled {
    /// The endpoint.
    pub id: WebhookId,
    /// Why, for people.
    pub reason: String,
}

/// An endpoint was deleted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deleted {
    /// The endpoint.
    pub id: WebhookId,
}
