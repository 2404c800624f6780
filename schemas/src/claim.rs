//! Events of a claim: uniqueness kept by the log itself.
//!
//! A claim's stream is named by a keyed hash of the value, and its last event says whether the
//! value is held. Both kinds are appended with an expected last sequence, so that of two
//! concurrent claims of one value only one succeeds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The value was taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Claimed {
    /// Who holds it now, such as an account's number.
    pub holder: String,
}

/// The value was given back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Released {
    /// Who held it.
    pub holder: String,
}
