//! Events of a webhook delivery: one event on its way to one endpoint.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{DeliveryId, EventId, WebhookId};

/// What is delivered: an event of the log to an endpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// The delivery; receivers see it as `webhook-id`, the same over all attempts.
    pub delivery_id: DeliveryId,
    /// The endpoint.
    pub webhook_id: WebhookId,
    /// The event.
    pub event_id: EventId,
    /// The event's sequence in the log.
    pub event_sequence: u64,
    /// The event's type.
    #[serde(rename = "type")]
    pub event_type: String,
}

/// A delivery waits for an attempt because somebody asked for it: its first, or another round of
/// attempts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Queued {
    /// What is delivered.
    #[serde(flatten)]
    pub message: Message,
    /// The event by which it was asked for.
    pub request_id: EventId,
    /// How many attempts were made before.
    pub attempts: u32,
}

/// What an attempt led to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Outcome {
    /// A 2xx: done.
    Succeeded,
    /// Tried again later.
    Retrying {
        /// When.
        #[serde(rename = "nextAttemptAt")]
        next_attempt_at: DateTime<Utc>,
    },
    /// Given up.
    Failed,
}

/// An attempt ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attempted {
    /// What was delivered.
    #[serde(flatten)]
    pub message: Message,
    /// The attempt's number, from 1; a replay counts on.
    pub attempt: u32,
    /// When it began.
    pub at: DateTime<Utc>,
    /// How long it took.
    pub duration_ms: u64,
    /// The receiver's HTTP status, where it answered.
    pub status: Option<u16>,
    /// Why it failed, where it did.
    pub error: Option<String>,
    /// The start of the receiver's answer.
    pub response: Option<String>,
    /// What it led to.
    #[serde(flatten)]
    pub outcome: Outcome,
}
