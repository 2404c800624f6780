//! Events of an API key.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::KeyId;

/// Who gave a key: `operator`, `owner` (a person of the organization, by hand), or the id of the
/// key that gave it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Giver {
    /// Whoever runs Waypost.
    Operator,
    /// A person of the organization's staff.
    Owner,
    /// A key that may manage keys.
    Key(KeyId),
}

const OPERATOR: &str = "operator";
const OWNER: &str = "owner";

impl Giver {
    /// The giver as written in events and lists.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Operator => OPERATOR,
            Self::Owner => OWNER,
            Self::Key(id) => id.as_str(),
        }
    }
}

impl From<String> for Giver {
    fn from(text: String) -> Self {
        match text.as_str() {
            OPERATOR => Self::Operator,
            OWNER => Self::Owner,
            _ => Self::Key(KeyId::from(text)),
        }
    }
}

impl From<Giver> for String {
    fn from(giver: Giver) -> Self {
        giver.as_str().to_owned()
    }
}

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
    /// Who gave it; it never worked if that was a key which had been withdrawn before.
    pub created_by: Giver,
}

/// An API key was withdrawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Revoked {
    /// The key's public name.
    pub key_id: KeyId,
}
