//! The keys in force, folded from the log.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use chrono::{DateTime, Utc};
use schemas::key::{self, Giver};
use schemas::{Actor, Event, KeyId, OrgId, Recorded};
use tokio_util::sync::CancellationToken;

use crate::key::KeyHash;
use crate::limit::{Counter, Limiter, Policy};
use crate::{Person, Scope, ScopeSet};

/// The caller of an organization's API: a valid key, or the session of a staff member.
pub struct Caller {
    /// The organization.
    pub org: OrgId,
    /// The key's public name; for a session, one that no key has.
    pub key_id: KeyId,
    /// Its scopes.
    pub scopes: ScopeSet,
    /// Requests allowed in any hour.
    pub rate_limit: u32,
    /// When it stops working.
    pub expires_at: Option<DateTime<Utc>>,
    pub(crate) credential: Credential,
    pub(crate) hourly: Arc<Counter>,
    /// Cancelled when the key is removed, or the person leaves the staff.
    pub(crate) revoked: CancellationToken,
}

/// What identifies a caller.
pub(crate) enum Credential {
    /// A key, which has a limit of its own for the business data API.
    Key { hash: KeyHash, minute: Arc<Counter> },
    /// A person's session.
    Session(Person),
}

impl Caller {
    /// The actor recorded in the events that its requests cause.
    pub(crate) fn actor(&self) -> Actor {
        match &self.credential {
            Credential::Key { .. } => Actor::Key(self.key_id.to_string()),
            Credential::Session(person) => Actor::Person(person.account_id),
        }
    }

    /// Whether it passes a check for `scope`.
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.allow(scope)
    }

    pub(crate) fn has_expired(&self, now: DateTime<Utc>) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("org", &self.org)
            .field("key_id", &self.key_id)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// All created keys that are neither revoked nor expired.
#[derive(Default)]
pub(crate) struct KeyDirectory(RwLock<Keys>);

#[derive(Default)]
struct Keys {
    by_hash: HashMap<KeyHash, Arc<Caller>>,
    hashes: HashMap<KeyId, KeyHash>,
    /// Keys that expire, the next one first.
    ends: BTreeSet<(DateTime<Utc>, KeyId)>,
    of_org: HashMap<OrgId, usize>,
}

impl KeyDirectory {
    pub(crate) fn find(&self, hash: &KeyHash) -> Option<Arc<Caller>> {
        let keys = self.0.read().unwrap_or_else(PoisonError::into_inner);
        keys.by_hash.get(hash).cloned()
    }

    /// The number of valid keys of an organization.
    pub(crate) fn count(&self, org: &OrgId) -> usize {
        let keys = self.0.read().unwrap_or_else(PoisonError::into_inner);
        keys.of_org.get(org).copied().unwrap_or_default()
    }

    /// Applies an event of a key. Applying it twice has no further effect.
    pub(crate) fn apply(&self, recorded: &Recorded, limiter: &Limiter, now: DateTime<Utc>) {
        match &recorded.event {
            Event::KeyCreated(created) => self.create(&recorded.stream.org, created, limiter, now),
            Event::KeyRevoked(revoked) => {
                let mut keys = self.0.write().unwrap_or_else(PoisonError::into_inner);
                keys.remove(&revoked.key_id);
            }
            _ => (),
        }
    }

    /// Removes expired keys.
    pub(crate) fn sweep(&self, now: DateTime<Utc>) {
        let mut keys = self.0.write().unwrap_or_else(PoisonError::into_inner);
        while let Some((end, key_id)) = keys.ends.first()
            && *end <= now
        {
            let key_id = key_id.clone();
            keys.remove(&key_id);
        }
    }

    fn create(&self, org: &OrgId, created: &key::Created, limiter: &Limiter, now: DateTime<Utc>) {
        let Some(hash) = KeyHash::from_hex(&created.key_sha256) else {
            tracing::error!(key_id = %created.key_id, "A key's hash cannot be read; the key does not work");
            return;
        };
        let caller = Caller {
            org: org.clone(),
            key_id: created.key_id.clone(),
            scopes: ScopeSet::from_names(created.scopes.iter().map(String::as_str)),
            rate_limit: created.rate_limit,
            expires_at: created.expires_at,
            credential: Credential::Key {
                hash,
                minute: Arc::new(limiter.counter(Policy::Minute, created.key_id.as_str())),
            },
            hourly: Arc::new(limiter.counter(Policy::Hourly, created.key_id.as_str())),
            revoked: CancellationToken::new(),
        };
        let mut keys = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if !caller.has_expired(now) && keys.may_come_from(&created.created_by, org) {
            keys.insert(hash, caller);
        }
    }
}

impl Keys {
    /// A revoked key can no longer create keys: a key that one of its requests in flight still
    /// created comes after the revocation in the log, and never works. (A created key does not
    /// outlive its creator, so an expired creator need not be known here.)
    fn may_come_from(&self, giver: &Giver, org: &OrgId) -> bool {
        let Giver::Key(giver) = giver else {
            return true;
        };
        let giver = self.hashes.get(giver);
        let giver = giver.and_then(|hash| self.by_hash.get(hash));
        giver.is_some_and(|giver| giver.org == *org)
    }

    fn insert(&mut self, hash: KeyHash, caller: Caller) {
        if self.hashes.contains_key(&caller.key_id) {
            return;
        }
        if let Some(end) = caller.expires_at {
            self.ends.insert((end, caller.key_id.clone()));
        }
        *self.of_org.entry(caller.org.clone()).or_default() += 1;
        self.hashes.insert(caller.key_id.clone(), hash);
        self.by_hash.insert(hash, Arc::new(caller));
        self.tell();
    }

    fn remove(&mut self, key_id: &KeyId) {
        let hash = self.hashes.remove(key_id);
        let Some(caller) = hash.and_then(|hash| self.by_hash.remove(&hash)) else {
            return;
        };
        caller.revoked.cancel();
        if let Some(end) = caller.expires_at {
            self.ends.remove(&(end, key_id.clone()));
        }
        if let Some(count) = self.of_org.get_mut(&caller.org) {
            *count -= 1;
            if *count == 0 {
                self.of_org.remove(&caller.org);
            }
        }
        self.tell();
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "no process holds so many keys that a figure could show the difference"
    )]
    fn tell(&self) {
        metrics::gauge!("waypost_keys_held").set(self.by_hash.len() as f64);
    }
}
