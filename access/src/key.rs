//! The format of an API key, and what is stored of it.

use std::fmt;

use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};

/// Prefix of every key, so that people and scanners recognize it.
const PREFIX: &str = "wp_";
/// Digits that hold 256 random bits.
const SECRET_DIGITS: usize = 43;
/// Digits that hold the CRC-32 of everything before them.
const CHECKSUM_DIGITS: usize = 6;
const LENGTH: usize = PREFIX.len() + SECRET_DIGITS + CHECKSUM_DIGITS;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The system provides no randomness.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the operating system's random generator does not answer")]
pub struct NoRandomness;

/// A whole API key: `wp_`, 43 base-62 digits, and a checksum that exposes a fake without a lookup.
/// It is shown once, when it is created, and `Debug` does not print it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Creates an unguessable key.
    pub fn generate() -> Result<Self, NoRandomness> {
        let mut entropy = [0; 32];
        let random = SystemRandom::new();
        random.fill(&mut entropy).map_err(|_| NoRandomness)?;
        Ok(Self::from_entropy(entropy))
    }

    /// Creates the key from these 256 bits, for a command that must return the same key twice.
    pub fn from_entropy(entropy: [u8; 32]) -> Self {
        let mut key = String::with_capacity(LENGTH);
        key.push_str(PREFIX);
        push_digits(&mut key, entropy, SECRET_DIGITS);
        let checksum = crc32fast::hash(key.as_bytes());
        push_digits(&mut key, checksum.to_be_bytes(), CHECKSUM_DIGITS);
        Self(key)
    }

    /// Parses text that has the format of a key, including its checksum.
    pub fn parse(text: &str) -> Option<Self> {
        has_key_form(text).then(|| Self(text.to_owned()))
    }

    /// The key itself, to be shown to its owner.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The hash of the key, which is what is stored.
    pub fn sha256(&self) -> KeyHash {
        KeyHash::of(&self.0)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// Writes a big-endian number in base 62 with a fixed number of digits, least significant first.
fn push_digits<const N: usize>(text: &mut String, mut number: [u8; N], digits: usize) {
    for _ in 0..digits {
        let mut remainder = 0_u32;
        for byte in &mut number {
            let value = remainder * 256 + u32::from(*byte);
            // The quotient of a two-digit number below 62 × 256 fits a byte.
            *byte = u8::try_from(value / 62).unwrap_or(u8::MAX);
            remainder = value % 62;
        }
        text.push(char::from(ALPHABET[remainder as usize]));
    }
}

/// Whether text has a key's prefix, length, alphabet and checksum.
pub(crate) fn has_key_form(text: &str) -> bool {
    if text.len() != LENGTH || !text.starts_with(PREFIX) {
        return false;
    }
    let Some((body, checksum)) = text.split_at_checked(LENGTH - CHECKSUM_DIGITS) else {
        return false;
    };
    let digits = &body.as_bytes()[PREFIX.len()..];
    if !digits.iter().all(u8::is_ascii_alphanumeric) {
        return false;
    }
    let mut expected = String::with_capacity(CHECKSUM_DIGITS);
    let crc = crc32fast::hash(body.as_bytes());
    push_digits(&mut expected, crc.to_be_bytes(), CHECKSUM_DIGITS);
    expected == checksum
}

/// The SHA-256 of a whole key, which is all that is stored. A key has enough entropy to need no
/// more.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyHash([u8; 32]);

impl KeyHash {
    pub(crate) fn of(key: &str) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest::digest(&digest::SHA256, key.as_bytes()).as_ref());
        Self(hash)
    }

    /// Parses the form used in `key.created`.
    pub(crate) fn from_hex(text: &str) -> Option<Self> {
        let mut hash = [0; 32];
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        for (byte, pair) in hash.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(hash))
    }
}

impl fmt::Display for KeyHash {
    /// The form used in `key.created`: 64 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(…)")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_form_of_a_key_never_changes() {
        let key = ApiKey::from_entropy([7; 32]);
        assert_eq!(key.expose().len(), LENGTH);
        let hash = key.sha256();
        assert_eq!(KeyHash::from_hex(&hash.to_string()), Some(hash));
        assert_ne!(ApiKey::generate().unwrap(), ApiKey::generate().unwrap());
        assert_eq!(format!("{key:?} {hash:?}"), "ApiKey(…) KeyHash(…)");
    }

    proptest! {
        #[test]
        fn a_made_key_has_the_promised_form(entropy: [u8; 32]) {
            let key = ApiKey::from_entropy(entropy);
            let (prefix, rest) = key.expose().split_at(3);
            prop_assert_eq!(prefix, "wp_");
            prop_assert!(rest.len() >= 40 && rest.bytes().all(|b| b.is_ascii_alphanumeric()));
            prop_assert_eq!(ApiKey::parse(key.expose()), Some(key));
        }

        #[test]
        fn one_changed_character_is_a_fake(entropy: [u8; 32], at in 0..LENGTH, to in 0_u8..128) {
            let key = ApiKey::from_entropy(entropy).expose().to_owned();
            let mut bytes = key.clone().into_bytes();
            prop_assume!(bytes[at] != to);
            bytes[at] = to;
            let changed = String::from_utf8(bytes).unwrap();
            prop_assert_eq!(ApiKey::parse(&changed), None);
        }

        #[test]
        fn different_entropy_gives_different_keys(one: [u8; 32], other: [u8; 32]) {
            prop_assume!(one != other);
            prop_assert_ne!(ApiKey::from_entropy(one), ApiKey::from_entropy(other));
        }

        #[test]
        fn any_text_is_parsed_without_panic(text: String) {
            prop_assert_eq!(ApiKey::parse(&text), None);
        }
    }
}
