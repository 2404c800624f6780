//! Events of a person at a place that a circle watches. They are in the circle's part of the log.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AccountId, CircleId, PlaceId, Sealed};

/// A person came to a place or went from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Crossing {
    /// Who.
    pub user_id: AccountId,
    /// The circle that watches the place.
    pub circle_id: CircleId,
    /// The place.
    pub place_id: PlaceId,
    /// When the fix was made that showed it.
    pub recorded_at: DateTime<Utc>,
    /// `{name}` of the place, sealed under the person who crossed.
    pub sealed: Sealed,
}
