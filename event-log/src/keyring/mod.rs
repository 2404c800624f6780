//! Keys of the installation: those derived from the master key, and the key of access tokens.

mod files;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ring::hmac;
use schemas::{DeliveryId, EventId, Receipt, WebhookId};
use uuid::Uuid;

pub use files::MasterKeyFiles;
use files::load_key;

const KEY_BYTES: usize = 32;
const BASE32: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

/// Why there is no master key.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    /// The file cannot be read or written.
    #[error("cannot use the key {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The given key is not 32 bytes in base64.
    #[error("{0} must be 32 bytes in base64")]
    Malformed(String),
    /// The system gives no random bytes.
    #[error("the operating system's random generator does not answer")]
    NoRandomness,
}

/// Keys for hashing values into subjects and receipts, for wrapping owners' keys and for signing
/// access tokens.
///
/// The holder of the master key can undo every sealing. Losing it loses all that was sealed, and
/// the names of subjects made from values. The key of access tokens is separate, so that it can be
/// changed: then everybody signs in again, and nothing is lost.
#[derive(Clone)]
pub struct Keyring {
    names: Arc<(hmac::Key, [u8; KEY_BYTES])>,
    wrapping: Arc<[u8; KEY_BYTES]>,
    tokens: Arc<[u8; KEY_BYTES]>,
    /// The file that the master key was read from.
    file: Option<Arc<Path>>,
}

impl Keyring {
    /// Takes the master key from `WAYPOST_MASTER_KEY` (base64) or from `<home>/secrets/master.key`,
    /// and the key of access tokens from `WAYPOST_TOKEN_KEY` or `<home>/secrets/token.key`. The
    /// files are created at the first start with mode 0600. Files that `WAYPOST_MASTER_KEY_FILE`
    /// and `WAYPOST_TOKEN_KEY_FILE` name must exist.
    pub fn load(home: &Path) -> Result<Self, KeyringError> {
        let secrets = home.join("secrets");
        let master = load_key("WAYPOST_MASTER_KEY", &secrets.join("master.key"))?;
        let tokens = load_key("WAYPOST_TOKEN_KEY", &secrets.join("token.key"))?;
        Ok(Self {
            tokens: Arc::new(tokens.bytes),
            file: master.file.map(Arc::from),
            ..Self::from_master(&master.bytes)
        })
    }

    /// The current content of the file that the master key was read from; `None` if there is none.
    pub(crate) fn read_again(&self) -> Option<Self> {
        let master = files::read(self.file.as_deref()?).ok()?;
        Some(Self {
            file: self.file.clone(),
            ..Self::from_master(&master)
        })
    }

    /// A keyring from 32 bytes, the key of access tokens included.
    pub fn from_master(master: &[u8; KEY_BYTES]) -> Self {
        let master = hmac::Key::new(hmac::HMAC_SHA256, master);
        let derive = |label: &str| {
            let mut key = [0; KEY_BYTES];
            key.copy_from_slice(hmac::sign(&master, label.as_bytes()).as_ref());
            key
        };
        Self {
            names: names(derive("waypost names 1")),
            wrapping: Arc::new(derive("waypost wrapping 1")),
            tokens: Arc::new(derive("waypost tokens 1")),
            file: None,
        }
    }

    /// The key that signs access tokens.
    pub fn token_key(&self) -> &[u8; KEY_BYTES] {
        &self.tokens
    }

    fn sign(&self, purpose: &str, parts: &[&[u8]]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.names.0);
        context.update(purpose.as_bytes());
        for part in parts {
            // Lengths distinguish `ab`+`c` from `a`+`bc`.
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        context.sign()
    }

    /// 128 bits that name `parts` for `purpose`, as 26 characters of `[0-9a-v]`; without the
    /// master key nobody can find `parts` from them.
    pub fn keyed_hash(&self, purpose: &str, parts: &[&[u8]]) -> String {
        let tag = self.sign(purpose, parts);
        let mut bits = 0_u128;
        for byte in &tag.as_ref()[..16] {
            bits = bits << 8 | u128::from(*byte);
        }
        let digit = |place: usize| char::from(BASE32[(bits >> (5 * place)) as usize & 31]);
        (0..26).rev().map(digit).collect()
    }

    /// An id that is the same whenever `parts` are, and that nobody else can compute.
    pub fn derived_uuid(&self, purpose: &str, parts: &[&[u8]]) -> Uuid {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&self.sign(purpose, parts).as_ref()[..16]);
        Uuid::new_v8(bytes)
    }

    /// The receipt of a request that came with an `Idempotency-Key`.
    pub fn receipt(&self, caller: &str, idempotency_key: &str, path: &str, body: &[u8]) -> Receipt {
        let key = &[caller.as_bytes(), idempotency_key.as_bytes()];
        Receipt {
            key: self.keyed_hash("receipt key", key),
            fingerprint: self.keyed_hash("receipt body", &[path.as_bytes(), body]),
        }
    }

    /// The delivery of an event to an endpoint: the same name over all attempts, restarts and
    /// replays, so that a receiver can recognise what it has had.
    pub fn delivery_id(&self, webhook: &WebhookId, event: EventId) -> DeliveryId {
        let parts: [&[u8]; 2] = [webhook.as_str().as_bytes(), event.0.as_bytes()];
        DeliveryId::from(format!("msg_{}", self.keyed_hash("delivery", &parts)))
    }

    /// The same, but with another keyring's key for names: a master key that replaced another still
    /// finds what was named before.
    pub(crate) fn with_names(&self, key: &[u8; KEY_BYTES]) -> Self {
        Self {
            names: names(*key),
            ..self.clone()
        }
    }

    pub(crate) fn names_key(&self) -> &[u8; KEY_BYTES] {
        &self.names.1
    }

    pub(crate) fn wrapping_key(&self) -> &[u8; KEY_BYTES] {
        &self.wrapping
    }
}

fn names(key: [u8; KEY_BYTES]) -> Arc<(hmac::Key, [u8; KEY_BYTES])> {
    Arc::new((hmac::Key::new(hmac::HMAC_SHA256, &key), key))
}

impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keyring(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_run_together_differ() {
        let keys = Keyring::from_master(&[7; 32]);
        assert_ne!(
            keys.keyed_hash("x", &[b"ab", b"c"]),
            keys.keyed_hash("x", &[b"a", b"bc"])
        );
        assert_ne!(keys.keyed_hash("x", &[b"a"]), keys.keyed_hash("y", &[b"a"]));
        assert_eq!(keys.keyed_hash("x", &[b"a"]).len(), 26);
    }

    #[test]
    fn a_delivery_has_one_name() {
        let keys = Keyring::from_master(&[3; 32]);
        let (one, other) = (EventId(Uuid::from_u128(1)), EventId(Uuid::from_u128(2)));
        let name = |webhook: &str, event| keys.delivery_id(&webhook.into(), event);
        assert_eq!(name("h1", one), name("h1", one));
        assert_ne!(name("h1", one), name("h1", other));
        assert_ne!(name("h1", one), name("h2", one));
        assert!(name("h1", one).as_str().starts_with("msg_"));
    }

    #[test]
    fn the_keys_made_at_the_first_start_are_found_at_the_next_and_private() {
        use std::fs;
        use std::os::unix::fs::PermissionsExt as _;
        let home = std::env::temp_dir().join(format!("waypost-keyring-{}", Uuid::new_v4()));
        let first = Keyring::load(&home).unwrap();
        let second = Keyring::load(&home).unwrap();
        let mode = |file| fs::metadata(home.join(file)).unwrap().permissions().mode();
        let modes = ["secrets/master.key", "secrets/token.key"].map(mode);
        fs::remove_dir_all(&home).unwrap();
        assert_eq!(
            first.keyed_hash("x", &[b"a"]),
            second.keyed_hash("x", &[b"a"])
        );
        assert_eq!(first.token_key(), second.token_key());
        assert_ne!(
            first.token_key(),
            Keyring::from_master(&[7; 32]).token_key()
        );
        assert_eq!(modes.map(|mode| mode & 0o777), [0o600, 0o600]);
    }
}
