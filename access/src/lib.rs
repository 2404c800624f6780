//! API keys, access tokens, sessions, scopes and limits.
//!
//! A handler names what it asks for in its signature:
//!
//! ```text
//! async fn trigger_workflow(caller: Authorized<scope::TriggerWorkflow>, …) -> …
//! ```
//!
//! Persons come with an access token of their account instead: [`AccountToken`].
//!
//! Keys are looked up in a directory that every process folds from the log, so that a revoked key
//! stops working everywhere at once and no request asks a database who its caller is; the same
//! holds for what ends a token. Limits are counted in Postgres, see [`limit`].

mod authorized;
mod directory;
mod follow;
mod key;
mod lasting;
pub mod limit;
mod operator;
mod people;
mod person;
mod refusal;
mod scopes;
mod settings;
mod staff;
mod visits;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use event_log::{FoldCheckpoint, ReadError, TailError};
use schemas::OrgId;
use service::{Clock, RequestContext};

pub use authorized::Authorized;
pub use directory::Caller;
pub use key::{ApiKey, KeyHash, NoRandomness};
pub use operator::{Operator, OperatorSettings};
pub use people::{OpenInvite, People, PeopleError, PersonOfStaff, people};
pub use person::{
    AccountToken, Allowances, EndingToken, NewToken, Person, PersonSettings, UncountedToken,
};
pub use refusal::Refusal;
pub use scopes::{Api, Scope, ScopeMarker, ScopeSet, UnknownScope, scope};
pub use settings::LimitSettings;
pub use staff::{ORGANIZATION_COOKIE, SESSION_COOKIE, Staff, is_own_page, not_staff};
pub use visits::by_session;

use directory::{Credential, KeyDirectory};
use key::has_key_form;
use limit::Limiter;
use person::Persons;
use staff::StaffDirectory;

/// Why access could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The log does not answer.
    #[error("cannot read the keys and accounts from the log: {0}")]
    Read(#[from] ReadError),
    /// The log has a hole.
    #[error("cannot follow the keys and accounts in the log: {0}")]
    Tail(#[from] TailError),
}

/// Knows the keys and tokens in force and counts their requests. Clones are the same.
#[derive(Clone)]
pub struct Access(Arc<Inner>);

struct Inner {
    keys: KeyDirectory,
    persons: Persons,
    /// Of what is known of persons.
    checkpoint: Arc<FoldCheckpoint>,
    staff: StaffDirectory,
    limiter: Limiter,
    settings: LimitSettings,
    clock: Arc<dyn Clock>,
    following: AtomicBool,
}

impl Access {
    /// The caller whose key this is, without counting anything.
    pub fn identify(&self, presented: &str) -> Result<Arc<Caller>, Refusal> {
        if !has_key_form(presented) {
            return Err(Refusal::InvalidKey);
        }
        let caller = self.0.keys.find(&KeyHash::of(presented));
        caller
            .filter(|caller| !caller.has_expired(self.0.clock.now()))
            .ok_or(Refusal::InvalidKey)
    }

    /// All checks of [`Authorized`], for a key that came another way than in a request's header.
    pub async fn authorize(
        &self,
        presented: &str,
        scope: Scope,
        request: &RequestContext,
    ) -> Result<Arc<Caller>, Refusal> {
        let caller = self.identify(presented)?;
        request.identify(&caller.org);
        self.count(&caller, Api::Waypost, request).await?;
        if caller.may(scope) {
            Ok(caller)
        } else {
            Err(Refusal::ScopeMissing(scope))
        }
    }

    /// Whether the key or session is still in force, for connections that outlive their first
    /// request.
    pub fn is_in_force(&self, caller: &Caller) -> bool {
        match &caller.credential {
            Credential::Key { hash, .. } => {
                let known = self.0.keys.find(hash);
                known.is_some_and(|known| {
                    known.key_id == caller.key_id && !known.has_expired(self.0.clock.now())
                })
            }
            Credential::Session(person) => {
                self.person_is_good(person) && !caller.revoked.is_cancelled()
            }
        }
    }

    /// How many keys of an organization are in force, as this process knows.
    pub fn keys_in_force(&self, org: &OrgId) -> usize {
        self.0.keys.count(org)
    }

    /// What counts requests.
    pub fn limiter(&self) -> &Limiter {
        &self.0.limiter
    }

    pub(crate) fn persons(&self) -> &Persons {
        &self.0.persons
    }

    pub(crate) fn staff(&self) -> &StaffDirectory {
        &self.0.staff
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.0.clock
    }

    /// Whether the keys and accounts are being followed, for `/readyz`.
    pub fn readiness(&self) -> Result<(), String> {
        if self.0.following.load(Ordering::Relaxed) {
            Ok(())
        } else {
            Err("the keys and accounts in the log cannot be followed".to_owned())
        }
    }

    /// Counts a request and says on its answer how the limit stands.
    pub(crate) async fn count(
        &self,
        caller: &Caller,
        api: Api,
        request: &RequestContext,
    ) -> Result<(), Refusal> {
        let (counter, quota) = match (api, &caller.credential) {
            (Api::BusinessData, Credential::Key { minute, .. }) => {
                (minute, self.0.settings.minute_requests)
            }
            _ => (&caller.hourly, caller.rate_limit),
        };
        let decision = self.0.limiter.check(counter, quota, 1).await;
        decision.announce(request);
        match decision.retry_after {
            None => Ok(()),
            Some(retry_after) => Err(Refusal::LimitReached { retry_after }),
        }
    }
}
