//! Signatures according to the Standard Webhooks specification.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

/// Prefix of a signing secret's base64.
const PREFIX: &str = "whsec_";

/// An endpoint's signing secret, ready to sign.
pub(super) struct SigningKey(hmac::Key);

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SigningKey(…)")
    }
}

impl SigningKey {
    /// Parses a secret of the form `whsec_<base64>`.
    pub(super) fn parse(secret: &str) -> Option<Self> {
        let bytes = STANDARD.decode(secret.strip_prefix(PREFIX)?).ok()?;
        Some(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// The `webhook-signature` of a message sent at `timestamp` (Unix seconds).
    pub(super) fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(format!("{id}.{timestamp}.").as_bytes());
        context.update(body);
        format!("v1,{}", STANDARD.encode(context.sign()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_vector_is_met() {
        let key = SigningKey::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = key.sign(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn what_is_no_secret_does_not_sign() {
        for text in ["", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_ä"] {
            let signs = SigningKey::parse(text).is_some_and(|_| text != "whsec_");
            assert!(!signs, "{text}");
        }
    }
}
