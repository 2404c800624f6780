//! The vault: personal data and secrets are sealed under their owner's own key, so that
//! destroying the key forgets the owner.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use async_nats::jetstream::kv;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use schemas::{AccountId, OrgId, Sealed};

use crate::Keyring;

const KEY_BYTES: usize = 32;
/// Stands before every ciphertext, so that another scheme can follow.
const SCHEME: &str = "v1.";
/// How long an owner's key is held in memory; a key destroyed elsewhere works here no longer.
const CACHED: Duration = Duration::from_secs(30);

/// Whose data it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// An organization: its secrets.
    Organization(OrgId),
    /// A person: all that is personal.
    Account(AccountId),
}

/// Why something cannot be sealed or unsealed.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The owner's key has been destroyed: nobody can read this any more.
    #[error("the owner was forgotten")]
    Forgotten,
    /// The ciphertext does not belong to this owner or was changed.
    #[error("the sealed value cannot be opened")]
    Broken,
    /// The keys' bucket does not answer.
    #[error("the vault does not answer: {0}")]
    Unavailable(String),
}

/// Seals and unseals under owners' keys, which lie in the bucket `KEYS`, wrapped by the master
/// key.
#[derive(Clone)]
pub struct Vault {
    shared: Arc<Shared>,
}

struct Shared {
    bucket: kv::Store,
    wrapping: LessSafeKey,
    random: SystemRandom,
    cache: RwLock<HashMap<Owner, (Arc<LessSafeKey>, Instant)>>,
}

impl Vault {
    pub(crate) fn open(bucket: kv::Store, keyring: &Keyring) -> Self {
        let wrapping = aead_key(keyring.wrapping_key());
        let (random, cache) = (SystemRandom::new(), RwLock::default());
        Self {
            shared: Arc::new(Shared {
                bucket,
                wrapping,
                random,
                cache,
            }),
        }
    }

    /// Seals a value under its owner's key, which is made at the first use.
    pub async fn seal(&self, owner: &Owner, plaintext: &str) -> Result<Sealed, VaultError> {
        let key = match self.key(owner).await? {
            Some(key) => key,
            None => self.make_key(owner).await?,
        };
        let sealed = self.encrypt(&key, owner, plaintext.as_bytes())?;
        Ok(Sealed::from_ciphertext(format!(
            "{SCHEME}{}",
            BASE64.encode(sealed)
        )))
    }

    /// Reads a sealed value.
    pub async fn unseal(&self, owner: &Owner, sealed: &Sealed) -> Result<String, VaultError> {
        let key = self.key(owner).await?.ok_or(VaultError::Forgotten)?;
        let text = sealed
            .ciphertext()
            .strip_prefix(SCHEME)
            .ok_or(VaultError::Broken)?;
        let bytes = BASE64.decode(text).map_err(|_| VaultError::Broken)?;
        let plain = decrypt(&key, owner, bytes)?;
        String::from_utf8(plain).map_err(|_| VaultError::Broken)
    }

    /// Destroys the owner's key. The bucket keeps one value per key and its streams are erased
    /// by overwriting, so the wrapped key's bytes do not stay behind.
    pub async fn forget(&self, owner: &Owner) -> Result<(), VaultError> {
        let name = bucket_key(owner);
        let entry = self.shared.bucket.entry(&name).await.map_err(unavailable)?;
        if let Some(entry) = entry {
            // Secure delete overwrites the message on disk; a plain key-value delete would not.
            let erased = self
                .shared
                .bucket
                .stream
                .delete_message(entry.revision)
                .await;
            erased.map_err(unavailable)?;
        }
        self.shared
            .bucket
            .delete(&name)
            .await
            .map_err(unavailable)?;
        self.forget_cached(owner);
        Ok(())
    }

    async fn key(&self, owner: &Owner) -> Result<Option<Arc<LessSafeKey>>, VaultError> {
        if let Some(key) = self.cached(owner) {
            return Ok(Some(key));
        }
        let wrapped = self
            .shared
            .bucket
            .get(bucket_key(owner))
            .await
            .map_err(unavailable)?;
        let Some(wrapped) = wrapped else {
            return Ok(None);
        };
        let bytes = decrypt(&self.shared.wrapping, owner, wrapped.to_vec())?;
        let bytes = bytes
            .as_slice()
            .try_into()
            .map_err(|_| VaultError::Broken)?;
        Ok(Some(self.remember(owner, aead_key(bytes))))
    }

    async fn make_key(&self, owner: &Owner) -> Result<Arc<LessSafeKey>, VaultError> {
        let mut bytes = [0; KEY_BYTES];
        self.shared
            .random
            .fill(&mut bytes)
            .map_err(|_| VaultError::Broken)?;
        let wrapped = self.encrypt(&self.shared.wrapping, owner, &bytes)?;
        match self
            .shared
            .bucket
            .create(bucket_key(owner), wrapped.into())
            .await
        {
            Ok(_) => Ok(self.remember(owner, aead_key(&bytes))),
            Err(error) if error.kind() == kv::CreateErrorKind::AlreadyExists => {
                self.key(owner).await?.ok_or(VaultError::Forgotten)
            }
            Err(error) => Err(unavailable(error)),
        }
    }

    fn cached(&self, owner: &Owner) -> Option<Arc<LessSafeKey>> {
        let cache = self
            .shared
            .cache
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let (key, since) = cache.get(owner)?;
        (since.elapsed() < CACHED).then(|| key.clone())
    }

    fn remember(&self, owner: &Owner, key: LessSafeKey) -> Arc<LessSafeKey> {
        let key = Arc::new(key);
        let mut cache = self
            .shared
            .cache
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        cache.retain(|_, (_, since)| since.elapsed() < CACHED);
        cache.insert(owner.clone(), (key.clone(), Instant::now()));
        key
    }

    fn forget_cached(&self, owner: &Owner) {
        let mut cache = self
            .shared
            .cache
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        cache.remove(owner);
    }

    /// Nonce and ciphertext, bound to the owner so that it opens nowhere else.
    fn encrypt(
        &self,
        key: &LessSafeKey,
        owner: &Owner,
        plain: &[u8],
    ) -> Result<Vec<u8>, VaultError> {
        let mut nonce = [0; NONCE_LEN];
        self.shared
            .random
            .fill(&mut nonce)
            .map_err(|_| VaultError::Broken)?;
        let mut text = plain.to_vec();
        let aad = Aad::from(bucket_key(owner));
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut text)
            .map_err(|_| VaultError::Broken)?;
        Ok([&nonce[..], &text].concat())
    }
}

fn decrypt(key: &LessSafeKey, owner: &Owner, mut bytes: Vec<u8>) -> Result<Vec<u8>, VaultError> {
    let (nonce, text) = bytes
        .split_at_mut_checked(NONCE_LEN)
        .ok_or(VaultError::Broken)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| VaultError::Broken)?;
    let plain = key.open_in_place(nonce, Aad::from(bucket_key(owner)), text);
    plain
        .map(|plain| plain.to_vec())
        .map_err(|_| VaultError::Broken)
}

fn aead_key(bytes: &[u8; KEY_BYTES]) -> LessSafeKey {
    let unbound = UnboundKey::new(&CHACHA20_POLY1305, bytes);
    #[expect(clippy::expect_used, reason = "the length is the type's")]
    LessSafeKey::new(unbound.expect("a key of 32 bytes"))
}

fn bucket_key(owner: &Owner) -> String {
    match owner {
        Owner::Organization(org) => format!("org.{org}"),
        Owner::Account(account) => format!("account.{account}"),
    }
}

fn unavailable(error: impl std::fmt::Display) -> VaultError {
    VaultError::Unavailable(error.to_string())
}
