//! Text that only the vault can read.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A value encrypted under its owner's key; what stands in the log instead of personal data,
/// password hashes and secrets. Forgetting the owner's key makes it unreadable for ever.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Sealed(String);

impl Sealed {
    /// Wraps ciphertext made by the vault.
    pub fn from_ciphertext(text: String) -> Self {
        Self(text)
    }

    /// The ciphertext.
    pub fn ciphertext(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealed(…)")
    }
}
