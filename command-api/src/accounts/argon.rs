//! argon2id that reuses its memory from one hash to the next.

use std::sync::{Mutex, PoisonError};

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::password_hash::{self, Result};
use argon2::{Algorithm, Argon2, Block, Params, Version};

/// A hash takes 19 MiB. Allocating and clearing that each time costs about as much as the hash
/// itself, so the buffers are kept: as many as were ever in use at once.
#[derive(Debug, Default)]
pub(super) struct Argon {
    unused: Mutex<Vec<Memory>>,
}

type Memory = Vec<Block>;

impl Argon {
    /// The hash of a password under this salt, in PHC's format, with the parameters that RFC 9106
    /// and OWASP advise.
    pub(super) fn hash(&self, password: &[u8], salt: &[u8]) -> Result<String> {
        let (algorithm, version) = (Algorithm::default(), Version::default());
        let params = Params::default();
        let salt = Salt::new(salt)?;
        let hash = PasswordHash {
            algorithm: algorithm.ident(),
            version: Some(version.into()),
            params: ParamsString::try_from(&params)?,
            salt: Some(salt),
            hash: Some(self.compute(&Argon2::new(algorithm, version, params), password, &salt)?),
        };
        Ok(hash.to_string())
    }

    /// Whether this is the password of a hash, by the parameters in the hash.
    pub(super) fn verify(&self, password: &[u8], hash: &str) -> Result<bool> {
        let hash = PasswordHash::new(hash)?;
        let (Some(salt), Some(expected)) = (&hash.salt, &hash.hash) else {
            return Err(password_hash::Error::PasswordInvalid);
        };
        let algorithm = Algorithm::try_from(hash.algorithm.as_str())?;
        let version = hash.version.map(Version::try_from).transpose()?;
        let argon = Argon2::new(
            algorithm,
            version.unwrap_or_default(),
            Params::try_from(&hash)?,
        );
        // Compared in constant time.
        Ok(self.compute(&argon, password, salt)? == *expected)
    }

    fn compute(&self, argon: &Argon2<'_>, password: &[u8], salt: &[u8]) -> Result<Output> {
        let length = argon.params().output_len();
        let mut output = [0; Output::MAX_LENGTH];
        let output = &mut output[..length.unwrap_or(Params::DEFAULT_OUTPUT_LEN)];
        let mut memory = self.unused().pop().unwrap_or_default();
        memory.resize(argon.params().block_count(), Block::new());
        let computed =
            argon.hash_password_into_with_memory(password, salt, output, memory.as_mut_slice());
        self.unused().push(memory);
        computed?;
        Ok(Output::new(output)?)
    }

    fn unused(&self) -> std::sync::MutexGuard<'_, Vec<Memory>> {
        self.unused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use argon2::{PasswordHasher as _, PasswordVerifier as _};

    use super::*;

    #[test]
    fn hashes_are_those_of_the_library_itself() {
        let (argon, library) = (Argon::default(), Argon2::default());
        for password in [&b"correct horse"[..], b"", b"battery staple"] {
            let ours = argon.hash(password, &[7; 16]).unwrap();
            let theirs: PasswordHash = library.hash_password_with_salt(password, &[7; 16]).unwrap();
            assert_eq!(ours, theirs.to_string());
            assert!(library.verify_password(password, ours.as_str()).is_ok());
            assert!(argon.verify(password, &ours).unwrap());
            assert!(!argon.verify(b"another", &ours).unwrap());
        }
    }

    #[test]
    fn a_hash_of_other_parameters_is_verified_by_those() {
        let weaker = Params::new(64, 1, 1, Some(24)).unwrap();
        let hash: PasswordHash = Argon2::from(weaker)
            .hash_password_with_salt(b"old", &[1; 16])
            .unwrap();
        let argon = Argon::default();
        assert!(argon.verify(b"old", &hash.to_string()).unwrap());
        assert!(!argon.verify(b"new", &hash.to_string()).unwrap());
        assert!(argon.verify(b"old", "$argon2id$").is_err());
    }
}
