//! Events of a circle: persons who see each other, or whom an organization may see.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AccountId, CircleId, OrgId, PlaceId, Sealed};

/// Whose circle it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CircleOwner {
    /// A person's; its name is sealed under the account.
    Account(AccountId),
    /// An organization's, whose webhooks, events and sockets get what members share; its name is
    /// sealed under the organization.
    Organization(OrgId),
}

/// A circle came into being.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Created {
    /// The circle.
    pub circle_id: CircleId,
    /// Whose it is.
    pub owner: CircleOwner,
    /// Its name, sealed under its owner.
    pub name: Sealed,
}

/// Somebody can join with a code, for a while.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InviteMade {
    /// The circle.
    pub circle_id: CircleId,
    /// The keyed hash of the code.
    pub code_hash: String,
    /// Until when.
    pub expires_at: DateTime<Utc>,
}

/// A person joined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemberJoined {
    /// The circle.
    pub circle_id: CircleId,
    /// Who.
    pub user_id: AccountId,
}

/// A person left; from then on nobody in the circle sees them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemberLeft {
    /// The circle.
    pub circle_id: CircleId,
    /// Who.
    pub user_id: AccountId,
}

/// The circle watches a place from now on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlaceAdded {
    /// The circle.
    pub circle_id: CircleId,
    /// The place.
    pub place_id: PlaceId,
    /// Who named it.
    pub by: AccountId,
    /// `{name, lat, lng, radius_m}`, sealed under the account that named it.
    pub place: Sealed,
}

/// The circle does not watch a place any more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlaceRemoved {
    /// The circle.
    pub circle_id: CircleId,
    /// The place.
    pub place_id: PlaceId,
}
