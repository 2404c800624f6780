//! Events of a webhook endpoint.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{DeliveryId, Sealed, WebhookId};

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

/// An endpoint's deliveries are signed with a new secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretRotated {
    /// The endpoint.
    pub id: WebhookId,
    /// The new signing secret (`whsec_…`), sealed under the organization's key.
    pub secret: Sealed,
    /// Until when the secret before it signs along.
    pub previous_until: DateTime<Utc>,
}

/// What is to be sent again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "what", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Replay {
    /// One delivery.
    Delivery {
        /// Which.
        #[serde(rename = "deliveryId")]
        delivery_id: DeliveryId,
    },
    /// Events of a part of the log, whether they were sent before or not.
    Events {
        /// Which stream of the log.
        feed: ReplayFeed,
        /// The sequence behind which they stand.
        after: u64,
        /// The sequence up to which they stand.
        through: u64,
        /// Which types, as the endpoint wanted them when this was asked for.
        types: Vec<String>,
    },
    /// Every delivery that had failed.
    Failed,
}

/// A stream of the log whose events are delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ReplayFeed {
    /// Every fact but positions.
    Events,
    /// Persons' positions.
    Locations,
}

/// Deliveries are to be made again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayRequested {
    /// The endpoint.
    pub id: WebhookId,
    /// Which deliveries.
    #[serde(flatten)]
    pub replay: Replay,
    /// How many they were when this was asked for.
    pub replayed: u64,
    /// The end of the deliveries' log when this was asked for: what stands behind it came after.
    pub attempts_through: u64,
}

/// A delivery that only tries the endpoint out is to be made: this event itself, as
/// `webhook.test`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestRequested {
    /// The endpoint.
    pub id: WebhookId,
}
