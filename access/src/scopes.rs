//! What a key may do.

use std::fmt;
use std::str::FromStr;

/// The APIs, which differ in how a key is sent and in which window its calls are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// Bearer keys, counted against the key's own limit over a rolling hour.
    Waypost,
    /// Bearer keys or `X-Api-Key`, counted in a fixed clock minute.
    BusinessData,
}

/// A scope as a type, for [`Authorized`](crate::Authorized).
pub trait ScopeMarker: Send + Sync + 'static {
    /// The scope.
    const SCOPE: Scope;
    /// The API that requires it.
    const API: Api;
}

macro_rules! scopes {
    ($($(#[$doc:meta])* $name:ident = $text:literal in $api:ident),+ $(,)?) => {
        /// One thing that a key may do.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Scope { $($(#[$doc])* $name),+ }

        impl Scope {
            /// Every scope.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The scope as it is written, such as `workflows:trigger`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),+ }
            }
        }

        /// Each scope as a type: `Authorized<scope::TriggerWorkflow>`.
        pub mod scope {
            use super::{Api, Scope, ScopeMarker};

            $(
                $(#[$doc])*
                #[derive(Clone, Copy, Debug)]
                pub struct $name;

                impl ScopeMarker for $name {
                    const SCOPE: Scope = Scope::$name;
                    const API: Api = Api::$api;
                }
            )+
        }
    };
}

scopes! {
    /// Start runs.
    TriggerWorkflow = "workflows:trigger" in Waypost,
    /// See workflows and runs.
    ReadWorkflows = "workflows:read" in Waypost,
    /// Change workflows, cancel and retry runs.
    WriteWorkflows = "workflows:write" in Waypost,
    /// Export companies.
    ExportCompanies = "export:companies:read" in Waypost,
    /// Export deals.
    ExportDeals = "export:deals:read" in Waypost,
    /// Export contacts.
    ExportContacts = "export:contacts:read" in Waypost,
    /// See orders.
    ReadOrders = "read:orders" in BusinessData,
    /// See leads.
    ReadLeads = "read:leads" in BusinessData,
    /// See the analytics summary.
    ReadAnalytics = "read:analytics" in BusinessData,
    /// See clients.
    ReadClients = "read:clients" in BusinessData,
    /// Change records.
    WriteRecords = "records:write" in Waypost,
    /// Change webhooks and see what they were sent.
    ManageWebhooks = "webhooks:manage" in Waypost,
    /// Read the events feed.
    ReadEvents = "events:read" in Waypost,
    /// Change the organization's circles.
    ManageCircles = "circles:manage" in Waypost,
    /// Make and revoke keys.
    ManageKeys = "keys:manage" in Waypost,
    /// Everything.
    Admin = "admin" in Waypost,
}

/// Text that is not a scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown scope {0:?}")]
pub struct UnknownScope(pub String);

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        let found = Self::ALL.iter().find(|scope| scope.as_str() == text);
        found.copied().ok_or_else(|| UnknownScope(text.to_owned()))
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of scopes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ScopeSet(u32);

impl ScopeSet {
    /// The scopes of these names; names that this program does not know are ignored.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        names
            .into_iter()
            .filter_map(|name| name.parse().ok())
            .collect()
    }

    /// Whether these scopes pass a check for `scope`: `admin` passes every check.
    pub const fn allow(self, scope: Scope) -> bool {
        self.holds(scope) || self.holds(Scope::Admin)
    }

    /// The scopes of the set, in the order of [`Scope::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL
            .iter()
            .copied()
            .filter(move |scope| self.holds(*scope))
    }

    const fn holds(self, scope: Scope) -> bool {
        self.0 & bit(scope) != 0
    }
}

const fn bit(scope: Scope) -> u32 {
    1 << scope as u32
}

impl FromIterator<Scope> for ScopeSet {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |set, scope| set | bit(scope)))
    }
}

impl fmt::Debug for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scope_reads_back_from_its_name() {
        for scope in Scope::ALL {
            assert_eq!(scope.to_string().parse(), Ok(*scope));
        }
        assert_eq!(Scope::ALL.len(), 16);
        assert!("workflows:Trigger".parse::<Scope>().is_err());
    }

    #[test]
    fn admin_passes_every_check_and_others_only_their_own() {
        let admin = ScopeSet::from_names(["admin"]);
        assert!(Scope::ALL.iter().all(|scope| admin.allow(*scope)));
        let one = ScopeSet::from_names(["records:write", "of:the:future"]);
        let allowed: Vec<_> = Scope::ALL
            .iter()
            .filter(|scope| one.allow(**scope))
            .collect();
        assert_eq!(allowed, [&Scope::WriteRecords]);
    }
}
