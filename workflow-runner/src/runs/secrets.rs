//! Organizations' secrets, read from the log and unsealed when a run needs them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::secret;
use domain::template::Shown;
use event_log::{Binding, EventLog, VaultError};
use schemas::{AggregateType, Event, OrgId, StreamId};
use tokio::time::Instant;

/// How long a value is held: a changed secret takes effect after this time.
const HELD_FOR: Duration = Duration::from_secs(2);
/// Values held at most.
const HELD: usize = 10_000;

/// The secrets of one run by their names. They do not print.
#[derive(Default)]
pub(super) struct Values {
    by_name: Arc<BTreeMap<String, String>>,
    /// The hosts that some may be sent to; the others may be sent to any.
    hosts: BTreeMap<String, Vec<String>>,
}

/// A secret would be sent where it must not.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Elsewhere {
    name: String,
    hosts: Vec<String>,
}

impl Elsewhere {
    /// Describes the error for the host that it would have been sent to.
    pub(super) fn to(&self, host: &str) -> String {
        let (name, hosts) = (&self.name, self.hosts.join(", "));
        format!(
            "url: secrets.{name} may be sent only to {hosts}, not to {host}; nothing was sent. \
             Allow more hosts with `waypost secret set --hosts`"
        )
    }
}

/// The secrets of all organizations.
pub(super) struct Secrets {
    log: EventLog,
    held: Mutex<HashMap<(OrgId, String), Held>>,
}

struct Held {
    value: Option<Arc<Secret>>,
    since: Instant,
}

struct Secret {
    value: String,
    hosts: Vec<String>,
}

/// Why secrets are currently unavailable.
#[derive(Debug, thiserror::Error)]
#[error("secrets cannot be read: {0}")]
pub(super) struct Unavailable(String);

impl Values {
    /// The values for one rendering.
    pub(super) fn shown(&self) -> Shown {
        Shown::new(Arc::clone(&self.by_name))
    }

    /// Checks whether the secrets that were shown may be sent to a host.
    pub(super) fn may_go_to(&self, host: &str, shown: &Shown) -> Result<(), Elsewhere> {
        for name in shown.names() {
            if let Some(hosts) = self.hosts.get(&name)
                && !secret::may_go_to(hosts, host)
            {
                let hosts = hosts.clone();
                return Err(Elsewhere { name, hosts });
            }
        }
        Ok(())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.by_name.values().map(String::as_str)
    }
}

impl Secrets {
    pub(super) fn new(log: EventLog) -> Self {
        let held = Mutex::default();
        Self { log, held }
    }

    /// The values of an organization's secrets, without those that were never set or whose owner
    /// was forgotten.
    pub(super) async fn get(
        &self,
        org: &OrgId,
        names: &BTreeSet<String>,
    ) -> Result<Values, Unavailable> {
        let (mut values, mut hosts) = (BTreeMap::new(), BTreeMap::new());
        for name in names {
            if let Some(secret) = self.value(org, name).await? {
                values.insert(name.clone(), secret.value.clone());
                if !secret.hosts.is_empty() {
                    hosts.insert(name.clone(), secret.hosts.clone());
                }
            }
        }
        Ok(Values {
            by_name: Arc::new(values),
            hosts,
        })
    }

    async fn value(&self, org: &OrgId, name: &str) -> Result<Option<Arc<Secret>>, Unavailable> {
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

    async fn read(&self, org: &OrgId, name: &str) -> Result<Option<Arc<Secret>>, Unavailable> {
        let stream = StreamId::new(org, AggregateType::Secret, name);
        let set = match self.log.last(&stream).await {
            Ok(Some(recorded)) => match recorded.event {
                Event::SecretSet(set) => set,
                _ => return Ok(None),
            },
            Ok(None) => return Ok(None),
            // Another version may be able to read what this one cannot.
            Err(error) => return Err(Unavailable(error.to_string())),
        };
        let binding = Binding::Secret(org.clone(), name.to_owned());
        match self.log.vault().unseal(&binding, &set.value).await {
            Ok(value) => Ok(Some(Arc::new(Secret {
                value,
                hosts: set.hosts,
            }))),
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
