//! API keys, access tokens, sessions, scopes and limits.
//!
//! A handler declares what it requires in its signature:
//!
//! ```text
//! async fn trigger_workflow(caller: Authorized<scope::TriggerWorkflow>, …) -> …
//! ```
//!
//! Persons send an access token of their account instead: [`AccountToken`].
//!
//! Keys are looked up in a directory that every process folds from the log, so a revoked key stops
//! working everywhere at once and no request queries a database for its caller. The same holds for
//! ended tokens. Limits are counted in Postgres, see [`limit`].

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
use service::health::Readiness;
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

/// Knows the valid keys and tokens and counts their requests. Clones share their state.
#[derive(Clone)]
pub struct Access(Arc<Inner>);

struct Inner {
    keys: KeyDirectory,
    persons: Persons,
    /// The checkpoint of `persons`.
    checkpoint: Arc<FoldCheckpoint>,
    staff: StaffDirectory,
    limiter: Limiter,
    settings: LimitSettings,
    clock: Arc<dyn Clock>,
    following: AtomicBool,
}

impl Access {
    /// Returns the caller of a key, without counting anything.
    pub fn identify(&self, presented: &str) -> Result<Arc<Caller>, Refusal> {
        if !has_key_form(presented) {
            return Err(Refusal::InvalidKey);
        }
        let caller = self.0.keys.find(&KeyHash::of(presented));
        caller
            .filter(|caller| !caller.has_expired(self.0.clock.now()))
            .ok_or(Refusal::InvalidKey)
    }

    /// Runs all checks of [`Authorized`], for a key that was not sent in a request's header.
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

    /// Whether the key or session is still valid, for connections that outlive their first request.
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

    /// The number of valid keys of an organization, as known to this process.
    pub fn keys_in_force(&self, org: &OrgId) -> usize {
        self.0.keys.count(org)
    }

    /// The limiter that counts requests.
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

    /// Adds the check that the keys and accounts are being followed. Services of one process share
    /// it.
    pub fn announce(&self, readiness: &Readiness) {
        let access = self.clone();
        readiness.add("keys", move || std::future::ready(access.readiness()));
    }

    fn readiness(&self) -> Result<(), String> {
        if self.0.following.load(Ordering::Relaxed) {
            Ok(())
        } else {
            Err("the keys and accounts in the log cannot be followed".to_owned())
        }
    }

    /// Counts a request and adds the state of the limit to its response.
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
