//! Events of an organization's named secrets, which workflows read as `secrets.<NAME>`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Sealed;

/// A secret was given a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Set {
    /// Its name.
    pub name: String,
    /// Its value, sealed under the organization's key.
    pub value: Sealed,
    /// The hosts that it may go to: names, addresses, or `*.` before a name for all below it; any
    /// where there is none.
    pub hosts: Vec<String>,
}
