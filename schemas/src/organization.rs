//! Events of an organization.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AccountId, OrgId};

/// The organization came into being.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Created {
    /// The organization.
    pub org_id: OrgId,
    /// Its name as people read it.
    pub name: String,
}

/// What a member of the staff may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Role {
    /// Everything.
    Owner,
}

/// A person joined the organization's staff.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberAdded {
    /// Who.
    pub account_id: AccountId,
    /// As what.
    pub role: Role,
}
