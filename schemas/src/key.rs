//! Events of an API key.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::KeyId;

/// An API key was made. The key itself is nowhere kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Created {
    /// The key's public name.
    pub key_id: KeyId,
    /// What its owner calls it.
    pub name: String,
    /// What it may do, such as `workflows:trigger`.
    pub scopes: Vec<String>,
    /// Requests in any hour.
    pub rate_limit: u32,
    /// When it stops working.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
    /// SHA-256 of the whole key in hexadecimal; a key has too much entropy to need a slow hash.
    pub key_sha256: String,
}

/// An API key was withdrawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Revoked {
    /// The key's public name.
    pub key_id: KeyId,
}
