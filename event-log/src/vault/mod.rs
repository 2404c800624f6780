//! The vault: personal data and secrets are sealed under their owner's own key, so that
//! destroying the key forgets the owner.

mod cipher;
mod keys;

use async_nats::jetstream::{self, kv};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use schemas::{AccountId, OrgId, Sealed};

use crate::{Error, Keyring, LogSettings};
use keys::Keys;
pub(crate) use keys::stream as keys_stream;

/// Stands before every ciphertext, so that another scheme can follow.
const SCHEME: &str = "v1.";

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
    /// The ciphertext does not belong to this owner or was changed. It may also stem from before
    /// its owner was forgotten, if something was sealed for the owner since.
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
    keys: Keys,
}

impl Vault {
    pub(crate) async fn open(
        context: &jetstream::Context,
        settings: &LogSettings,
        keyring: &Keyring,
    ) -> Result<Self, Error> {
        let keys = Keys::open(context, settings, keyring).await?;
        Ok(Self { keys })
    }

    /// The bucket of wrapped keys.
    pub(crate) fn bucket(&self) -> &kv::Store {
        self.keys.bucket()
    }

    /// Seals a value under its owner's key, which is made at the first use.
    pub async fn seal(&self, owner: &Owner, plaintext: &str) -> Result<Sealed, VaultError> {
        let key = self.keys.get_or_make(owner).await?;
        let bound_to = self.keys.name(owner);
        let sealed = cipher::encrypt(&key, &bound_to, plaintext.as_bytes())?;
        let text = format!("{SCHEME}{}", BASE64.encode(sealed));
        Ok(Sealed::from_ciphertext(text))
    }

    /// Reads a sealed value.
    pub async fn unseal(&self, owner: &Owner, sealed: &Sealed) -> Result<String, VaultError> {
        let key = self.keys.get(owner).await?.ok_or(VaultError::Forgotten)?;
        let text = sealed.ciphertext().strip_prefix(SCHEME);
        let text = text.ok_or(VaultError::Broken)?;
        let bytes = BASE64.decode(text).map_err(|_| VaultError::Broken)?;
        let plain = cipher::decrypt(&key, &self.keys.name(owner), bytes)?;
        String::from_utf8(plain).map_err(|_| VaultError::Broken)
    }

    /// Takes note that an owner is being forgotten: from now on this process holds no key of theirs
    /// in memory and makes none.
    pub fn let_go(&self, owner: &Owner) {
        self.keys.let_go(owner);
    }

    /// Destroys the owner's key: what was sealed under it is unreadable for ever, in other
    /// processes as soon as they no longer hold the key in memory (`WAYPOST_VAULT_CACHE_MS`, or at
    /// once after [`Vault::let_go`]).
    /// May be repeated.
    pub async fn forget(&self, owner: &Owner) -> Result<(), VaultError> {
        self.keys.destroy(owner).await
    }
}
