//! Organizations' secrets, read from the log and unsealed when a run needs them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use event_log::{Binding, EventLog, ReadError, VaultError};
use schemas::{AggregateType, Event, OrgId, StreamId};
use tokio::time::Instant;

/// How long a value is held: a secret that was set anew counts after this time.
const HELD_FOR: Duration = Duration::from_secs(2);
/// Values held at most.
const HELD: usize = 10_000;

/// The secrets of one run by their names. They do not print.
#[derive(Default)]
pub(super) struct Values(BTreeMap<String, String>);

/// The secrets of all organizations.
pub(super) struct Secrets {
    log: EventLog,
    held: Mutex<HashMap<(OrgId, String), Held>>,
}

struct Held {
    value: Option<Arc<str>>,
    since: Instant,
}

/// Why secrets cannot be had at the moment.
#[derive(Debug, thiserror::Error)]
#[error("secrets cannot be read: {0}")]
pub(super) struct Unavailable(String);

impl Values {
    pub(super) fn by_name(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(String::as_str)
    }
}

impl Secrets {
    pub(super) fn new(log: EventLog) -> Self {
        let held = Mutex::default();
        Self { log, held }
    }

    /// The values of an organization's secrets; without those that were never set or whose owner
    /// was forgotten.
    pub(super) async fn get(
        &self,
        org: &OrgId,
        names: &BTreeSet<String>,
    ) -> Result<Values, Unavailable> {
        let mut values = BTreeMap::new();
        for name in names {
            if let Some(value) = self.value(org, name).await? {
                values.insert(name.clone(), value.to_string());
            }
        }
        Ok(Values(values))
    }

    async fn value(&self, org: &OrgId, name: &str) -> Result<Option<Arc<str>>, Unavailable> {
        let key = (org.clone(), name.to_owned());
        if let Some(held) = self.held().get(&key)
            && held.since.elapsed() < HELD_FOR
        {
            return Ok(held.value.clone());
        }
        let since = Instant::now();
        let value = self.read(org, name).await?;
        let mut held = self.held();
        if held.len() >= HELD {
            held.clear();
        }
        let newest = value.clone();
        held.insert(key, Held { value, since });
        Ok(newest)
    }

    async fn read(&self, org: &OrgId, name: &str) -> Result<Option<Arc<str>>, Unavailable> {
        let stream = StreamId::new(org, AggregateType::Secret, name);
        let sealed = match self.log.last(&stream).await {
            Ok(Some(recorded)) => match recorded.event {
                Event::SecretSet(set) => set.value,
                _ => return Ok(None),
            },
            Ok(None) | Err(ReadError::Undecodable { .. }) => return Ok(None),
            Err(ReadError::Unavailable(reason)) => return Err(Unavailable(reason)),
        };
        let binding = Binding::Secret(org.clone(), name.to_owned());
        match self.log.vault().unseal(&binding, &sealed).await {
            Ok(value) => Ok(Some(Arc::from(value))),
            Err(VaultError::Unavailable(reason)) => Err(Unavailable(reason)),
            Err(error @ (VaultError::Forgotten | VaultError::Broken)) => {
                tracing::warn!(org = org.as_str(), name, %error, "A secret cannot be unsealed");
                Ok(None)
            }
        }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, HashMap<(OrgId, String), Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
