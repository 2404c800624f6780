//! A webhook endpoint as the API shows it: without its secret.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::paging::Listed;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Webhook {
    pub(super) id: String,
    pub(super) url: String,
    pub(super) events: Vec<String>,
    pub(super) description: Option<String>,
    pub(super) status: String,
    pub(super) disabled_reason: Option<String>,
    pub(super) created_at: DateTime<Utc>,
    pub(super) updated_at: DateTime<Utc>,
}

impl Listed for Webhook {
    fn created_at(&self) -> DateTime<Utc> {
        self.created_at
    }

    fn id(&self) -> &str {
        &self.id
    }
}
