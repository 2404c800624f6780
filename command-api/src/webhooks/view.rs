//! A webhook endpoint as its owner sees it.

use chrono::{DateTime, Utc};
use domain::webhook::Endpoint;
use schemas::WebhookId;
use schemas::webhook::Status;
use serde::Serialize;

/// An endpoint, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// The endpoint.
    pub id: WebhookId,
    /// The URL it listens at.
    pub url: String,
    /// The events it receives.
    pub events: Vec<String>,
    /// The owner's description of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it receives anything.
    pub status: Status,
    /// When it was created.
    pub created_at: DateTime<Utc>,
}

impl Webhook {
    pub(super) fn new(endpoint: Endpoint, created_at: DateTime<Utc>) -> Self {
        Self {
            id: endpoint.id,
            url: endpoint.url,
            events: endpoint.events,
            description: endpoint.description,
            status: endpoint.status,
            created_at,
        }
    }
}
