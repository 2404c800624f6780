//! Events of a call for help. One that an organization may see is in its part of the log too,
//! written together with the person's own.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AccountId, Sealed, SosId};

/// A person called for help.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Triggered {
    /// The call.
    pub sos_id: SosId,
    /// Who called.
    pub user_id: AccountId,
    /// Who was alerted: all who shared a circle with the caller.
    pub audience: Vec<AccountId>,
    /// Whether it arrived long after it was meant.
    pub late: bool,
    /// When help was called for, by the sender's clock.
    pub recorded_at: DateTime<Utc>,
    /// `{lat, lng, message}`, sealed under the caller.
    pub sealed: Sealed,
}

/// Somebody saw a call, or the danger has passed. It repeats the call, so that whoever hears only
/// this knows all of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answered {
    /// The call.
    pub sos_id: SosId,
    /// Who called.
    pub user_id: AccountId,
    /// Who answered: one of the audience, or the caller.
    // Or a staff member of an alerted organization; the published schema keeps its wording.
    pub by: AccountId,
    /// Who was alerted.
    pub audience: Vec<AccountId>,
    /// Whether the call arrived long after it was meant.
    pub late: bool,
    /// When help was called for, by the sender's clock.
    pub recorded_at: DateTime<Utc>,
    /// `{lat, lng, message}`, sealed under the caller.
    pub sealed: Sealed,
}
