//! Passwords: hashed slowly, away from the threads that answer requests.

use argon2::Argon2;
use argon2::password_hash::PasswordHasher as _;

use crate::{Commands, LogError};

/// Hashes a password with argon2id under a salt of its own.
pub(crate) async fn hash(commands: &Commands, password: String) -> Result<String, LogError> {
    let salt: [u8; 16] = commands.random.bytes();
    let hashing = tokio::task::spawn_blocking(move || {
        let hash = Argon2::default().hash_password_with_salt(password.as_bytes(), &salt);
        hash.map(|hash| hash.to_string())
    });
    let broken = |error: &dyn std::fmt::Display| LogError::Broken(error.to_string());
    let hash = hashing.await.map_err(|error| broken(&error))?;
    hash.map_err(|error| broken(&error))
}

#[cfg(test)]
mod tests {
    use argon2::PasswordVerifier as _;
    use argon2::password_hash::phc::PasswordHash;

    use super::*;

    #[test]
    fn a_hash_opens_for_its_password_alone() {
        let salt = [1_u8; 16];
        let hash = Argon2::default().hash_password_with_salt(b"correct horse", &salt);
        let text = hash.unwrap().to_string();
        assert!(text.starts_with("$argon2id$"));
        let hash = PasswordHash::new(&text).unwrap();
        assert!(
            Argon2::default()
                .verify_password(b"correct horse", &hash)
                .is_ok()
        );
        assert!(
            Argon2::default()
                .verify_password(b"wrong horse", &hash)
                .is_err()
        );
    }
}
