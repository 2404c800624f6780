//! Owners' keys: created at first use, kept wrapped in a bucket, held in memory for a while.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use async_nats::Client;
use async_nats::jetstream::stream::{Config, DiscardPolicy, LastRawMessageErrorKind};
use async_nats::jetstream::{Context, kv};

use super::cipher::{self, Key};
use super::ring::Ring;
use super::{Owner, VaultError};
use crate::subject::token;
use crate::{Bucket, Error, Keyring, LogSettings, connection, streams};

const BUCKET: &str = "KEYS";

/// Within this time, a process notices a new master key.
const LOOKS: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub(crate) struct Keys {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    context: Context,
    bucket: Bucket,
    keyring: Keyring,
    ring: RwLock<Arc<Ring>>,
    cache: RwLock<Cache>,
}

/// The keyring and the ring that a master key opens.
pub(crate) struct Opened {
    /// With the names of the installation's first master key.
    pub(crate) keyring: Keyring,
    ring: Ring,
}

impl Opened {
    /// Finds out what a master key opens, before anything is created: nothing, if another one has
    /// replaced it.
    pub(crate) async fn by(
        context: &Context,
        settings: &LogSettings,
        keyring: &Keyring,
    ) -> Result<Self, Error> {
        let Some(bucket) = Bucket::existing(context, settings, BUCKET).await? else {
            let (keyring, ring) = (keyring.clone(), Ring::of(keyring));
            return Ok(Self { keyring, ring });
        };
        let read = Ring::read(&bucket, keyring).await;
        let read = read.map_err(|error| Error::Prepare {
            name: bucket.name.clone(),
            reason: error.to_string(),
        })?;
        let (ring, keyring) = read.ok_or(Error::OtherMasterKey)?;
        Ok(Self { keyring, ring })
    }
}

impl Keys {
    pub(super) async fn open(
        context: &Context,
        settings: &LogSettings,
        opened: Opened,
    ) -> Result<Self, Error> {
        let name = format!("{}{BUCKET}", settings.log_prefix);
        let wanted = stream(settings);
        let stream = streams::get_or_create(context, &wanted).await?;
        // A key-value bucket forbids it by default, and a plain delete leaves the bytes on disk.
        if stream.cached_info().config.deny_delete {
            return Err(Error::Unfit(format!("bucket {name} forbids erasing")));
        }
        let bucket = context.get_key_value(&name).await;
        let bucket = bucket.map_err(|error| Error::Prepare {
            name,
            reason: error.to_string(),
        })?;
        let shared = Arc::new(Shared {
            client: context.client(),
            context: context.clone(),
            bucket: Bucket::new(context, bucket, settings),
            keyring: opened.keyring,
            ring: RwLock::new(Arc::new(opened.ring)),
            cache: RwLock::new(Cache::new(settings.vault_cache())),
        });
        tokio::spawn(look_out(Arc::downgrade(&shared)));
        Ok(Self { shared })
    }

    pub(super) fn context(&self) -> &Context {
        &self.shared.context
    }

    /// The key that names are made with.
    pub(super) fn names(&self) -> &[u8; cipher::KEY_BYTES] {
        self.shared.keyring.names_key()
    }

    fn ring(&self) -> Arc<Ring> {
        let ring = self.shared.ring.read();
        ring.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The wrapping keys, as currently recorded in the bucket.
    pub(super) async fn renewed_ring(&self) -> Result<Arc<Ring>, VaultError> {
        let known = self.ring();
        let (bucket, keyring) = (&self.shared.bucket, &self.shared.keyring);
        let Some(renewed) = known.renewed(bucket, keyring).await? else {
            return Ok(known);
        };
        let renewed = Arc::new(renewed);
        let ring = self.shared.ring.write();
        *ring.unwrap_or_else(PoisonError::into_inner) = renewed.clone();
        Ok(renewed)
    }

    pub(super) fn bucket(&self) -> &Bucket {
        &self.shared.bucket
    }

    /// The owner's name in the bucket, which its texts are bound to.
    pub(super) fn name(&self, owner: &Owner) -> String {
        match owner {
            Owner::Organization(org) => {
                format!("org.{}", token(&self.shared.keyring, "=", org.as_str()))
            }
            Owner::Account(account) => format!("account.{account}"),
        }
    }

    /// The owner's key, if there is one.
    pub(super) async fn get(&self, owner: &Owner) -> Result<Option<Arc<Key>>, VaultError> {
        if let Some(key) = self.read_cache(|cache| cache.get(owner)) {
            return Ok(Some(key));
        }
        self.check()?;
        let name = self.name(owner);
        let wrapped = self.shared.bucket.get(&name).await;
        let Some(wrapped) = wrapped.map_err(unavailable)? else {
            return Ok(None);
        };
        let bytes = match self.ring().unwrap(&name, &wrapped) {
            Some((bytes, _)) => bytes,
            // Wrapped by a master key that this process does not know yet, or changed.
            None => self.unwrap_anew(&name, &wrapped).await?,
        };
        Ok(Some(self.remember(owner, cipher::key(&bytes))))
    }

    async fn unwrap_anew(
        &self,
        name: &str,
        wrapped: &[u8],
    ) -> Result<[u8; cipher::KEY_BYTES], VaultError> {
        let ring = self.renewed_ring().await?;
        let unwrapped = ring.unwrap(name, wrapped);
        unwrapped.map(|(bytes, _)| bytes).ok_or(VaultError::Broken)
    }

    pub(super) async fn get_or_make(&self, owner: &Owner) -> Result<Arc<Key>, VaultError> {
        match self.get(owner).await? {
            Some(key) => Ok(key),
            None => self.make(owner).await,
        }
    }

    async fn make(&self, owner: &Owner) -> Result<Arc<Key>, VaultError> {
        if self.read_cache(|cache| cache.let_go.contains(owner)) {
            return Err(VaultError::Forgotten);
        }
        let (name, bytes) = (self.name(owner), cipher::random()?);
        let wrapped = self.ring().wrap(&name, &bytes)?;
        match self.shared.bucket.create(&name, wrapped.into()).await {
            Ok(_) => Ok(self.remember(owner, cipher::key(&bytes))),
            // Another caller created it meanwhile: theirs is the key.
            Err(error) if error.kind() == kv::CreateErrorKind::AlreadyExists => {
                self.get(owner).await?.ok_or(VaultError::Forgotten)
            }
            Err(error) => Err(unavailable(error)),
        }
    }

    /// Overwrites the wrapped key on the server's disk.
    pub(super) async fn destroy(&self, owner: &Owner) -> Result<(), VaultError> {
        self.check()?;
        let subject = format!("{}{}", self.shared.bucket.prefix, self.name(owner));
        let stream = &self.shared.bucket.stream;
        loop {
            let last = stream.get_last_raw_message_by_subject(&subject).await;
            let sequence = match last {
                Ok(message) => message.sequence,
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => break,
                Err(error) => return Err(unavailable(error)),
            };
            // Also fails if another caller has just destroyed it: then it is not found.
            if let Err(error) = stream.delete_message(sequence).await {
                let gone = stream.get_last_raw_message_by_subject(&subject).await;
                if gone.is_ok_and(|message| message.sequence == sequence) {
                    return Err(unavailable(error));
                }
            }
        }
        self.write_cache(|cache| cache.remove(owner));
        Ok(())
    }

    pub(super) fn let_go(&self, owner: &Owner) {
        self.write_cache(|cache| {
            cache.remove(owner);
            cache.let_go.insert(owner.clone());
        });
    }

    fn remember(&self, owner: &Owner, key: Key) -> Arc<Key> {
        let key = Arc::new(key);
        self.write_cache(|cache| cache.insert(owner, key.clone()));
        key
    }

    fn read_cache<T>(&self, read: impl FnOnce(&Cache) -> T) -> T {
        let cache = self.shared.cache.read();
        read(&cache.unwrap_or_else(PoisonError::into_inner))
    }

    fn write_cache(&self, write: impl FnOnce(&mut Cache)) {
        let cache = self.shared.cache.write();
        write(&mut cache.unwrap_or_else(PoisonError::into_inner));
    }

    fn check(&self) -> Result<(), VaultError> {
        connection::check(&self.shared.client).map_err(VaultError::Unavailable)
    }
}

/// Checks from time to time for a new master key, so that even a process that reads nothing learns
/// of it before the old one opens nothing any more.
async fn look_out(shared: Weak<Shared>) {
    let mut failed = None;
    loop {
        tokio::time::sleep(LOOKS).await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        // Nothing changes while the server is unavailable.
        let error = Keys { shared }.renewed_ring().await.err();
        let error = error.map(|error| error.to_string());
        if let Some(error) = error.as_ref().filter(|_| error != failed) {
            tracing::warn!(error, "Cannot look for another master key");
        }
        failed = error;
    }
}

/// The stream of a key-value bucket, except that its messages can be erased.
pub(crate) fn stream(settings: &LogSettings) -> Config {
    let bucket = format!("{}{BUCKET}", settings.log_prefix);
    Config {
        name: format!("KV_{bucket}"),
        subjects: vec![format!("$KV.{bucket}.>")],
        max_messages_per_subject: 1,
        discard: DiscardPolicy::New,
        num_replicas: settings.log_replicas,
        allow_direct: true,
        allow_rollup: true,
        ..Config::default()
    }
}

fn unavailable(error: impl std::fmt::Display) -> VaultError {
    VaultError::Unavailable(error.to_string())
}

/// Keys held in memory.
struct Cache {
    keys: HashMap<Owner, (Arc<Key>, Instant)>,
    /// Owners whose keys are no longer held or created.
    let_go: HashSet<Owner>,
    /// How long one is held: after that, a key that was destroyed elsewhere no longer works here.
    held: Duration,
    swept: Instant,
}

impl Cache {
    fn new(held: Duration) -> Self {
        Self {
            keys: HashMap::new(),
            let_go: HashSet::new(),
            held,
            swept: Instant::now(),
        }
    }

    fn get(&self, owner: &Owner) -> Option<Arc<Key>> {
        let (key, since) = self.keys.get(owner)?;
        (since.elapsed() < self.held).then(|| key.clone())
    }

    fn insert(&mut self, owner: &Owner, key: Arc<Key>) {
        if self.let_go.contains(owner) {
            return;
        }
        if self.swept.elapsed() > self.held {
            let held = self.held;
            self.keys.retain(|_, (_, since)| since.elapsed() < held);
            self.swept = Instant::now();
        }
        self.keys.insert(owner.clone(), (key, Instant::now()));
    }

    fn remove(&mut self, owner: &Owner) {
        self.keys.remove(owner);
    }
}
