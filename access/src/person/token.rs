//! Access tokens: JSON Web Tokens under one fixed algorithm.

use std::sync::Once;

use chrono::{DateTime, Utc};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result as JwtResult, new_error};
use jsonwebtoken::signature::{Error as SignatureError, Signer, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use ring::hmac;
use schemas::{AccountId, TokenId};
use serde::{Deserialize, Serialize};

/// The only accepted algorithm; a token's header cannot choose another.
const ALGORITHM: Algorithm = Algorithm::HS256;

/// The claims of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claims {
    /// The account.
    sub: String,
    /// The token's id.
    jti: String,
    iat: i64,
    exp: i64,
    /// How often the account's password had been changed when the token was created. Counting needs
    /// no synchronized clocks: a token of an earlier password is an earlier token.
    pw: u32,
}

impl Claims {
    pub(super) fn new(
        account: AccountId,
        token: &TokenId,
        passwords: u32,
        (from, until): (DateTime<Utc>, DateTime<Utc>),
    ) -> Self {
        Self {
            sub: account.to_string(),
            jti: token.to_string(),
            iat: from.timestamp(),
            exp: until.timestamp(),
            pw: passwords,
        }
    }

    pub(super) fn account(&self) -> Option<AccountId> {
        self.sub.parse().ok().map(AccountId)
    }

    pub(super) fn token(&self) -> TokenId {
        TokenId::from(self.jti.as_str())
    }

    pub(super) fn expires_at(&self) -> Option<DateTime<Utc>> {
        DateTime::from_timestamp(self.exp, 0)
    }

    pub(super) const fn passwords(&self) -> u32 {
        self.pw
    }
}

/// Signs tokens and verifies its own.
pub(super) struct Signing {
    encoding: EncodingKey,
    decoding: DecodingKey,
    validation: Validation,
}

impl Signing {
    pub(super) fn new(key: &[u8]) -> Self {
        use_ring();
        let mut validation = Validation::new(ALGORITHM);
        // Expiry is checked by the clock that is passed in, without leeway.
        validation.validate_exp = false;
        Self {
            encoding: EncodingKey::from_secret(key),
            decoding: DecodingKey::from_secret(key),
            validation,
        }
    }

    pub(super) fn sign(&self, claims: &Claims) -> JwtResult<String> {
        encode(&Header::new(ALGORITHM), claims, &self.encoding)
    }

    /// Returns the claims of a token that was signed with this key.
    pub(super) fn verify(&self, token: &str) -> Option<Claims> {
        let data = decode::<Claims>(token, &self.decoding, &self.validation).ok()?;
        Some(data.claims)
    }
}

/// Makes `jsonwebtoken` use `ring`, so that the tree has one crypto library.
fn use_ring() {
    static RING: CryptoProvider = CryptoProvider {
        signer_factory: |algorithm, key| Ok(Box::new(Hs256::new(*algorithm, key.as_bytes())?)),
        verifier_factory: |algorithm, key| {
            Ok(Box::new(Hs256::new(*algorithm, key.try_get_as_bytes()?)?))
        },
        key_utils: KeyUtils::new_unimplemented(),
    };
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        if RING.install_default().is_err() {
            tracing::error!("Access tokens are signed by another library than expected");
        }
    });
}

struct Hs256(hmac::Key);

impl Hs256 {
    fn new(algorithm: Algorithm, key: &[u8]) -> JwtResult<Self> {
        if algorithm != ALGORITHM {
            return Err(new_error(ErrorKind::InvalidAlgorithm));
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, key)))
    }
}

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, SignatureError> {
        Ok(hmac::sign(&self.0, message).as_ref().to_vec())
    }
}

impl Verifier<Vec<u8>> for Hs256 {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), SignatureError> {
        // Compares in constant time.
        hmac::verify(&self.0, message, signature).map_err(|_| SignatureError::new())
    }
}

impl JwtSigner for Hs256 {
    fn algorithm(&self) -> Algorithm {
        ALGORITHM
    }
}

impl JwtVerifier for Hs256 {
    fn algorithm(&self) -> Algorithm {
        ALGORITHM
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> Claims {
        let from = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let until = from + chrono::TimeDelta::hours(1);
        Claims::new(AccountId(7), &TokenId::from("a token"), 3, (from, until))
    }

    #[test]
    fn a_token_is_known_by_its_own_key_alone() {
        let (ours, theirs) = (Signing::new(&[1; 32]), Signing::new(&[2; 32]));
        let token = ours.sign(&claims()).unwrap();
        assert_eq!(ours.verify(&token), Some(claims()));
        assert_eq!(theirs.verify(&token), None);
    }

    /// RFC 7515, appendix A.1: the example's signature under the example's key.
    #[test]
    fn the_signature_is_the_one_of_the_standard() {
        use jsonwebtoken::crypto::{sign, verify};
        use_ring();
        let key = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75\
                   aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow==";
        let message = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOj\
                       EzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
        let signature = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let signing = EncodingKey::from_urlsafe_base64_secret(key).unwrap();
        assert_eq!(
            sign(message.as_bytes(), &signing, ALGORITHM).unwrap(),
            signature
        );
        let verifying = DecodingKey::from_secret(signing.as_bytes());
        assert!(verify(signature, message.as_bytes(), &verifying, ALGORITHM).unwrap());
    }

    #[test]
    fn no_other_algorithm_is_signed_or_verified() {
        use jsonwebtoken::crypto::sign;
        use_ring();
        for other in [Algorithm::HS384, Algorithm::HS512] {
            let key = EncodingKey::from_secret(&[1; 32]);
            assert!(sign(b"x", &key, other).is_err());
            assert!(Hs256::new(other, &[1; 32]).is_err());
        }
    }
}
