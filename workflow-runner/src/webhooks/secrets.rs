//! An endpoint's signing secrets: the newest, and earlier ones that still sign too.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use schemas::Sealed;
use tokio::sync::OnceCell;

use super::signature::SigningKey;

/// Maximum number of signing secrets, so that the header stays short however often they are
/// rotated.
const MOST: usize = 10;

/// One secret.
#[derive(Clone, Debug)]
pub(super) struct Secret {
    pub(super) sealed: Sealed,
    /// The signing key, once it was unsealed.
    pub(super) key: Arc<OnceCell<SigningKey>>,
    /// Until when it signs, if it was replaced.
    until: Option<DateTime<Utc>>,
}

/// All secrets in force, newest first.
#[derive(Clone, Debug)]
pub(super) struct Secrets(Vec<Secret>);

impl Secrets {
    pub(super) fn new(sealed: Sealed) -> Self {
        Self(vec![Secret::new(sealed)])
    }

    /// Adds a newest secret; the previous one keeps signing until `previous_until`.
    pub(super) fn rotate(&mut self, sealed: Sealed, previous_until: DateTime<Utc>) {
        if let Some(newest) = self.0.first_mut() {
            newest.until = Some(previous_until);
        }
        self.0.insert(0, Secret::new(sealed));
        self.0.truncate(MOST);
    }

    /// The secrets in force at `now`.
    pub(super) fn in_force(&self, now: DateTime<Utc>) -> impl Iterator<Item = &Secret> {
        let in_force = move |secret: &&Secret| secret.until.is_none_or(|until| now < until);
        self.0.iter().filter(in_force)
    }
}

impl Secret {
    fn new(sealed: Sealed) -> Self {
        Self {
            sealed,
            key: Arc::default(),
            until: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(number: usize) -> Sealed {
        Sealed::from_ciphertext(number.to_string())
    }

    #[test]
    fn an_old_secret_signs_along_until_its_time() {
        let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
        let mut secrets = Secrets::new(sealed(1));
        secrets.rotate(sealed(2), at(10));
        let signing = |secrets: &Secrets, now| -> Vec<Sealed> {
            secrets
                .in_force(at(now))
                .map(|s| s.sealed.clone())
                .collect()
        };
        assert_eq!(signing(&secrets, 9), [sealed(2), sealed(1)]);
        assert_eq!(signing(&secrets, 10), [sealed(2)]);
        secrets.rotate(sealed(3), at(15));
        assert_eq!(signing(&secrets, 9), [sealed(3), sealed(2), sealed(1)]);
        assert_eq!(signing(&secrets, 12), [sealed(3), sealed(2)]);
        for number in 4..100 {
            secrets.rotate(sealed(number), at(20));
        }
        assert_eq!(signing(&secrets, 0).len(), MOST);
        assert_eq!(signing(&secrets, 0)[0], sealed(99));
    }
}
