//! Events of a person's account.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AccountId, Sealed, TokenId};

/// A person opened an account. All that is personal is sealed under the account's own key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Registered {
    /// The account.
    pub account_id: AccountId,
    /// The person's name.
    pub name: Sealed,
    /// The person's e-mail address.
    pub email: Sealed,
    /// The argon2 hash of the password.
    pub password_hash: Sealed,
}

/// The person named a phone number at registration: it is theirs once they show that they hold
/// it, and until then only for a short while.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PhoneNamed {
    /// The account.
    pub account_id: AccountId,
    /// The number in E.164.
    pub phone: Sealed,
}

/// The person showed that they hold a phone number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PhoneVerified {
    /// The account.
    pub account_id: AccountId,
    /// The number in E.164.
    pub phone: Sealed,
}

/// The person set another password; tokens made before this end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PasswordChanged {
    /// The account.
    pub account_id: AccountId,
    /// The argon2 hash of the password.
    pub password_hash: Sealed,
}

/// The person ended one of their access tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignedOut {
    /// The account.
    pub account_id: AccountId,
    /// The token.
    pub token_id: TokenId,
    /// When the token would have ended anyway.
    pub expires_at: DateTime<Utc>,
}

/// How much of the location-safety API an account may use in an hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Tier {
    /// 100 requests, 30 positions.
    #[default]
    #[serde(rename = "free")]
    Free,
    /// 1,000 requests, 120 positions.
    #[serde(rename = "family")]
    Family,
    /// 10,000 requests, 360 positions.
    #[serde(rename = "family+")]
    FamilyPlus,
    /// What the operator agreed on.
    #[serde(rename = "enterprise")]
    Enterprise,
}

/// The operator moved an account to a tier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TierSet {
    /// The account.
    pub account_id: AccountId,
    /// The tier.
    pub tier: Tier,
    /// Requests an hour in place of the tier's own number.
    pub requests: Option<u32>,
    /// Positions an hour in place of the tier's own number.
    pub locations: Option<u32>,
}

/// The person hides where they are, until a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SharingPaused {
    /// The account.
    pub account_id: AccountId,
    /// Until when.
    pub until: DateTime<Utc>,
}

/// The person shows again where they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SharingResumed {
    /// The account.
    pub account_id: AccountId,
}

/// The person was forgotten: the key of all that was sealed for them is destroyed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Forgotten {
    /// The account.
    pub account_id: AccountId,
}
