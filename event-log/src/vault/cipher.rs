//! Encryption: ChaCha20-Poly1305, bound to the key's owner so that a text opens nowhere else.

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};

use super::VaultError;

pub(super) const KEY_BYTES: usize = 32;

pub(super) type Key = LessSafeKey;

pub(super) fn key(bytes: &[u8; KEY_BYTES]) -> Key {
    let unbound = UnboundKey::new(&CHACHA20_POLY1305, bytes);
    #[expect(clippy::expect_used, reason = "the length is the type's")]
    LessSafeKey::new(unbound.expect("a key of 32 bytes"))
}

/// A name of a key that reveals nothing else about it.
pub(super) fn mark(bytes: &[u8; KEY_BYTES]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, bytes);
    let tag = hmac::sign(&key, b"waypost wrapping mark 1");
    let mut half = [0; 16];
    half.copy_from_slice(&tag.as_ref()[..16]);
    format!("{:032x}", u128::from_be_bytes(half))
}

pub(super) fn random<const LENGTH: usize>() -> Result<[u8; LENGTH], VaultError> {
    let mut bytes = [0; LENGTH];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| {
        VaultError::Unavailable(
            "the operating system's random generator does not answer".to_owned(),
        )
    })?;
    Ok(bytes)
}

/// Nonce and ciphertext.
pub(super) fn encrypt(key: &Key, bound_to: &str, plain: &[u8]) -> Result<Vec<u8>, VaultError> {
    let nonce: [u8; NONCE_LEN] = random()?;
    let mut text = plain.to_vec();
    let (once, aad) = (Nonce::assume_unique_for_key(nonce), Aad::from(bound_to));
    key.seal_in_place_append_tag(once, aad, &mut text)
        .map_err(|_| VaultError::Broken)?;
    Ok([&nonce[..], &text].concat())
}

pub(super) fn decrypt(
    key: &Key,
    bound_to: &str,
    mut bytes: Vec<u8>,
) -> Result<Vec<u8>, VaultError> {
    let broken = |_| VaultError::Broken;
    let split = bytes.split_at_mut_checked(NONCE_LEN);
    let (nonce, text) = split.ok_or(VaultError::Broken)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(broken)?;
    let plain = key.open_in_place(nonce, Aad::from(bound_to), text);
    plain.map(|plain| plain.to_vec()).map_err(broken)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn only_its_own_key_and_name_open_a_text(plain: Vec<u8>, place: prop::sample::Index) {
            let (mine, other) = (key(&[1; KEY_BYTES]), key(&[2; KEY_BYTES]));
            let sealed = encrypt(&mine, "me", &plain).unwrap();
            prop_assert_eq!(decrypt(&mine, "me", sealed.clone()).unwrap(), plain);
            prop_assert!(decrypt(&other, "me", sealed.clone()).is_err());
            prop_assert!(decrypt(&mine, "you", sealed.clone()).is_err());
            let mut changed = sealed.clone();
            changed[place.index(sealed.len())] ^= 1;
            prop_assert!(decrypt(&mine, "me", changed).is_err());
            let cut = sealed[..place.index(sealed.len())].to_vec();
            prop_assert!(decrypt(&mine, "me", cut).is_err());
        }
    }

    #[test]
    fn the_same_text_never_looks_the_same() {
        let key = key(&[1; KEY_BYTES]);
        let sealed = || encrypt(&key, "me", b"text").unwrap();
        assert_ne!(sealed(), sealed());
    }
}
