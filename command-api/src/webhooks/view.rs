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
    /// Where it listens.
    pub url: String,
    /// Which events it gets.
    pub events: Vec<String>,
    /// What its owner says of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it gets anything.
    pub status: Status,
    /// When it was made.
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
