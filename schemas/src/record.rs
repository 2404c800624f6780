//! Events of business records: each carries the whole record, so that the last one is its state.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::RecordId;

/// A contact as it was written. `updatedAt` is the event's own time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Contact {
    /// The contact.
    pub id: RecordId,
    /// Given name.
    pub first_name: Option<String>,
    /// Family name.
    pub last_name: Option<String>,
    /// E-mail address.
    pub email: Option<String>,
    /// Phone number as it was given.
    pub phone: Option<String>,
    /// Position at work.
    pub job_title: Option<String>,
    /// The company's record, as it was written (it need not exist).
    pub company_id: Option<String>,
    /// The company's name, as it was written.
    pub company_name: Option<String>,
    /// City.
    pub city: Option<String>,
    /// Country.
    pub country: Option<String>,
    /// Who looks after the contact.
    pub owner: Option<String>,
    /// When the contact came to be, given by the caller or the time of its first event.
    pub created_at: DateTime<Utc>,
}

/// A record was deleted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deleted {
    /// The record.
    pub id: RecordId,
}
