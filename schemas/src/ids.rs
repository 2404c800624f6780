//! Identifiers, each its own type so that one cannot be used in place of another.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! text_ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps an id as given.
            pub fn new(id: impl Into<String>) -> Self {
                Self(id.into())
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The id as owned text.
            pub fn into_string(self) -> String {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(id.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(id: String) -> Self {
                Self(id)
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id.to_string())
            }
        }
    )+};
}

text_ids! {
    /// An organization, the tenant that owns everything but persons' accounts.
    OrgId,
    /// An API key's public name (never the key itself).
    KeyId,
    /// A workflow, named by whoever saved it.
    WorkflowId,
    /// A step within its workflow.
    StepId,
    /// A run of a workflow.
    RunId,
    /// A webhook endpoint.
    WebhookId,
    /// One event on its way to one webhook endpoint; what receivers see as `webhook-id`.
    DeliveryId,
    /// A business record, named by the caller (1 to 128 characters) or a UUID.
    RecordId,
    /// An access token of an account, by its `jti`.
    TokenId,
    /// A circle of persons who see each other.
    CircleId,
    /// A place that a circle watches.
    PlaceId,
    /// A person's call for help.
    SosId,
    /// An invite to an organization's staff.
    InviteId,
}

/// A person's account: a positive integer below 2^53, the same after any replay.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(extend("minimum" = 1, "maximum" = 9_007_199_254_740_991_u64))]
pub struct AccountId(pub u64);

impl fmt::Display for AccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An event's own name; an append that is tried again with the same id is the same event.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct EventId(pub Uuid);

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
