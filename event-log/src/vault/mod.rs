//! The vault: personal data and secrets are sealed under their owner's own key, so that
//! destroying the key forgets the owner.

mod binding;
mod cipher;
mod keys;
mod ring;
mod rotation;

use async_nats::jetstream;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use schemas::{AccountId, OrgId, Sealed};

use crate::{Bucket, Error, LogSettings};
pub use binding::Binding;
use cipher::Key;
use keys::Keys;
pub(crate) use keys::{Opened, stream as keys_stream};
pub(crate) use ring::named_by;
pub use rotation::{Rotation, RotationError, Stage, TellWraps};

/// Prefix of a text that opens only for its owner and at its place.
const SCHEME: &str = "v2.";
/// Prefix of a text from earlier versions, which opens for its owner at any place.
const ANYWHERE: &str = "v1.";

/// The owner of data.
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
    /// The ciphertext does not belong to this owner and place, or was changed. It may also date
    /// from before its owner was forgotten, if something was sealed for the owner since.
    #[error("the sealed value cannot be opened")]
    Broken,
    /// The keys' bucket does not answer, or now opens only for another master key.
    #[error("the vault does not answer: {0}")]
    Unavailable(String),
}

impl VaultError {
    /// Whether the same may be sealed or opened a moment later.
    pub fn passes(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

/// Seals and unseals under owners' keys, which are kept in the bucket `KEYS`, wrapped by the master
/// key.
#[derive(Clone)]
pub struct Vault {
    keys: Keys,
}

impl Vault {
    pub(crate) async fn open(
        context: &jetstream::Context,
        settings: &LogSettings,
        opened: Opened,
    ) -> Result<Self, Error> {
        let keys = Keys::open(context, settings, opened).await?;
        Ok(Self { keys })
    }

    /// The owners' keys.
    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The bucket of wrapped keys.
    pub(crate) fn bucket(&self) -> &Bucket {
        self.keys.bucket()
    }

    /// Seals a value for its place, under its owner's key, which is created at first use.
    pub async fn seal(&self, binding: &Binding, plaintext: &str) -> Result<Sealed, VaultError> {
        let owner = binding.owner();
        let key = self.keys.get_or_make(&owner).await?;
        let bound_to = binding.bound_to(&self.keys.name(&owner));
        let sealed = cipher::encrypt(&key, &bound_to, plaintext.as_bytes())?;
        let text = format!("{SCHEME}{}", BASE64.encode(sealed));
        Ok(Sealed::from_ciphertext(text))
    }

    /// Opens a sealed value that belongs there.
    pub async fn unseal(&self, binding: &Binding, sealed: &Sealed) -> Result<String, VaultError> {
        let owner = binding.owner();
        let key = self.keys.get(&owner).await?.ok_or(VaultError::Forgotten)?;
        open(&key, &self.keys.name(&owner), binding, sealed.ciphertext())
    }

    /// Records that an owner is being forgotten: from now on this process holds no key of theirs in
    /// memory and creates none.
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

/// Opens a text of the owner with this `name`.
fn open(key: &Key, name: &str, binding: &Binding, text: &str) -> Result<String, VaultError> {
    let (bound_to, text) = if let Some(text) = text.strip_prefix(SCHEME) {
        (binding.bound_to(name), text)
    } else {
        let text = text.strip_prefix(ANYWHERE).ok_or(VaultError::Broken)?;
        (name.to_owned(), text)
    };
    let bytes = BASE64.decode(text).map_err(|_| VaultError::Broken)?;
    let plain = cipher::decrypt(key, &bound_to, bytes)?;
    String::from_utf8(plain).map_err(|_| VaultError::Broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_earlier_times_open_for_ever() {
        // Sealed by an earlier version.
        let text = "v1.AAECAwQFBgcICQoLCGdc9wmzi0f8M2rOcFPxM55kIX55Kl2Srd16gQ";
        let key = cipher::key(&[5; 32]);
        for binding in [Binding::Name(AccountId(1)), Binding::Email(AccountId(1))] {
            let opened = open(&key, "account.1", &binding, text);
            assert_eq!(opened.unwrap(), "Ada Lovelace");
        }
        assert!(open(&key, "account.2", &Binding::Name(AccountId(2)), text).is_err());
    }
}
