//! Events of a person's positions.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AccountId, Sealed};

/// A person was somewhere. Its stream holds one person's positions; the person and `recorded_at`
/// name one fix, however often it is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Updated {
    /// Who.
    pub user_id: AccountId,
    /// When the fix was made, by the sender's clock.
    pub recorded_at: DateTime<Utc>,
    /// `{lat, lng, accuracy, speed, place_name, battery}`, sealed under the account.
    pub sealed: Sealed,
}
