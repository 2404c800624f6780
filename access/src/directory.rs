//! The keys in force, folded from the log.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use chrono::{DateTime, Utc};
use schemas::{Event, KeyId, OrgId, Recorded, key};

use crate::key::KeyHash;
use crate::limit::{Counter, Limiter, Policy};
use crate::{Scope, ScopeSet};

/// Who is asking: a key in force.
pub struct Caller {
    /// The organization that owns the key.
    pub org: OrgId,
    /// The key's public name.
    pub key_id: KeyId,
    /// What it may do.
    pub scopes: ScopeSet,
    /// Its requests in any hour.
    pub rate_limit: u32,
    /// When it stops working.
    pub expires_at: Option<DateTime<Utc>>,
    pub(crate) hash: KeyHash,
    pub(crate) hourly: Arc<Counter>,
    pub(crate) minute: Arc<Counter>,
}

impl Caller {
    /// Whether the key passes a check for `scope`.
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

/// Every key that was made and not revoked.
#[derive(Default)]
pub(crate) struct KeyDirectory(RwLock<Keys>);

#[derive(Default)]
struct Keys {
    by_hash: HashMap<KeyHash, Arc<Caller>>,
    hashes: HashMap<KeyId, KeyHash>,
}

impl KeyDirectory {
    pub(crate) fn find(&self, hash: &KeyHash) -> Option<Arc<Caller>> {
        let keys = self.0.read().unwrap_or_else(PoisonError::into_inner);
        keys.by_hash.get(hash).cloned()
    }

    /// Takes up an event of a key; the same event twice is the same as once.
    pub(crate) fn apply(&self, recorded: &Recorded, limiter: &Limiter) {
        match &recorded.event {
            Event::KeyCreated(created) => self.create(&recorded.stream.org, created, limiter),
            Event::KeyRevoked(revoked) => self.revoke(&revoked.key_id),
            _ => (),
        }
    }

    fn create(&self, org: &OrgId, created: &key::Created, limiter: &Limiter) {
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
            hash,
            hourly: Arc::new(limiter.counter(Policy::Hourly, created.key_id.as_str())),
            minute: Arc::new(limiter.counter(Policy::Minute, created.key_id.as_str())),
        };
        let mut keys = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if !keys.hashes.contains_key(&created.key_id) {
            keys.hashes.insert(created.key_id.clone(), hash);
            keys.by_hash.insert(hash, Arc::new(caller));
        }
    }

    fn revoke(&self, key_id: &KeyId) {
        let mut keys = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(hash) = keys.hashes.remove(key_id) {
            keys.by_hash.remove(&hash);
        }
    }
}
