//! A run as the API shows it.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::value::RawValue;
use sqlx::types::Json;

use crate::paging::Listed;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Run {
    #[serde(rename = "runId")]
    pub(crate) id: String,
    pub(crate) workflow_id: String,
    pub(crate) workflow_version: i64,
    pub(crate) state: String,
    pub(crate) trigger_payload: Json<Box<RawValue>>,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) started_at: Option<DateTime<Utc>>,
    pub(crate) ended_at: Option<DateTime<Utc>>,
    pub(crate) error: Option<String>,
    pub(crate) steps: Json<Box<RawValue>>,
    /// The number of runs in the list in which this one was found.
    #[serde(skip)]
    pub(crate) total: i64,
}

impl Listed for Run {
    fn created_at(&self) -> DateTime<Utc> {
        self.created_at
    }

    fn id(&self) -> &str {
        &self.id
    }
}
