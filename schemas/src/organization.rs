//! Events of an organization.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AccountId, InviteId, OrgId, Sealed};

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

/// A person left the organization's staff, or was removed from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberRemoved {
    /// Who.
    pub account_id: AccountId,
    /// The person of the staff who did it; nobody where it was the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<AccountId>,
}

/// Whoever has an address may join the staff by a link, once and for a while. A further invite of
/// the same address ends this one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberInvited {
    /// The invite.
    pub invite_id: InviteId,
    /// The account that the address belonged to, or else the one that may be opened with the link.
    pub account_id: AccountId,
    /// The address, sealed under that account.
    pub email: Sealed,
    /// The keyed hash of the organization and the address.
    pub email_hash: String,
    /// The keyed hash of the code in the link.
    pub code_hash: String,
    /// As what.
    pub role: Role,
    /// Until when.
    pub expires_at: DateTime<Utc>,
    /// The person of the staff who invited; nobody where it was the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<AccountId>,
}

/// An invite was used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InviteAccepted {
    /// The invite.
    pub invite_id: InviteId,
    /// By whom.
    pub account_id: AccountId,
}

/// An invite works no more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InviteWithdrawn {
    /// The invite.
    pub invite_id: InviteId,
    /// The person of the staff who took it back; nobody where it was the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<AccountId>,
}
