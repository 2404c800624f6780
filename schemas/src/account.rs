//! Events of a person's account.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AccountId, Sealed};

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
