//! Passwords: hashed slowly, away from the threads that answer requests, and so many at a time.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use tokio::sync::Semaphore;

use crate::{LogError, Random};

/// Hashes that may wait for their turn where nothing else is said.
const WAITING: usize = 200;

/// Hashes passwords with argon2id. Each takes a processor and 19 MiB for some 20 ms, so only so
/// many are under way at once; a few more may wait, and beyond that one is turned away.
#[derive(Clone, Debug)]
pub struct Passwords(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
    most_waiting: usize,
    /// Nobody's password: what is hashed against where there is no account, so that it takes as
    /// long as where there is one.
    nobodys: OnceLock<String>,
}

/// Why nothing was hashed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HashError {
    /// Too many wait already.
    #[error("too many sign-ins at once")]
    TooMany,
    /// What nobody expected.
    #[error("{0}")]
    Broken(String),
}

impl From<HashError> for LogError {
    fn from(error: HashError) -> Self {
        match error {
            HashError::TooMany => Self::Overloaded,
            HashError::Broken(reason) => Self::Broken(reason),
        }
    }
}

impl Default for Passwords {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self::new(processors, WAITING)
    }
}

impl Passwords {
    /// So many hashes at once, and so many more that may wait.
    pub fn new(at_once: usize, most_waiting: usize) -> Self {
        Self(Arc::new(Inner {
            turns: Arc::new(Semaphore::new(at_once.max(1))),
            waiting: AtomicUsize::new(0),
            most_waiting,
            nobodys: OnceLock::new(),
        }))
    }

    /// Hashes a password under a salt of its own.
    pub(crate) async fn hash(
        &self,
        random: &Random,
        password: String,
    ) -> Result<String, HashError> {
        let salt: [u8; 16] = random.bytes();
        self.in_turn(move |_| hash(password.as_bytes(), &salt))
            .await?
    }

    /// Whether a password is the one behind a hash; without a hash it is not, and finding that out
    /// takes as long.
    pub(crate) async fn verify(
        &self,
        password: String,
        expected: Option<String>,
    ) -> Result<bool, HashError> {
        self.in_turn(move |inner| {
            let known = expected.is_some();
            let expected = match expected {
                Some(expected) => expected,
                None => inner.nobodys()?,
            };
            let expected = PasswordHash::new(&expected)
                .map_err(|error| HashError::Broken(error.to_string()))?;
            let right = Argon2::default().verify_password(password.as_bytes(), &expected);
            Ok(right.is_ok() && known)
        })
        .await?
    }

    async fn in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> T + Send + 'static,
    ) -> Result<T, HashError> {
        let inner = self.0.clone();
        let waiting = Waiting::enter(inner.clone())?;
        let turn = inner.turns.clone().acquire_owned().await;
        let turn = turn.map_err(|error| HashError::Broken(error.to_string()))?;
        drop(waiting);
        let done = tokio::task::spawn_blocking(move || {
            let done = work(&inner);
            // Not before: whoever asked may go away, and the work goes on.
            drop(turn);
            done
        });
        let done = done.await;
        done.map_err(|error| HashError::Broken(error.to_string()))
    }
}

impl Inner {
    fn nobodys(&self) -> Result<String, HashError> {
        if let Some(known) = self.nobodys.get() {
            return Ok(known.clone());
        }
        let made = hash(b"nobody's", &[0; 16])?;
        Ok(self.nobodys.get_or_init(|| made).clone())
    }
}

/// A place in the queue, given back when its holder goes away too.
struct Waiting(Arc<Inner>);

impl Waiting {
    fn enter(inner: Arc<Inner>) -> Result<Self, HashError> {
        let before = inner.waiting.fetch_add(1, Ordering::Relaxed);
        let entered = Self(inner);
        if before > entered.0.most_waiting {
            return Err(HashError::TooMany);
        }
        Ok(entered)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

fn hash(password: &[u8], salt: &[u8]) -> Result<String, HashError> {
    let hash = Argon2::default().hash_password_with_salt(password, salt);
    let hash = hash.map_err(|error| HashError::Broken(error.to_string()))?;
    Ok(hash.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_hash_opens_for_its_password_alone() {
        let (passwords, random) = (Passwords::default(), Random::default());
        let hash = passwords
            .hash(&random, "correct horse".to_owned())
            .await
            .unwrap();
        assert!(hash.starts_with("$argon2id$"));
        let verify = async |password: &str, hash: &str| {
            let verified = passwords.verify(password.to_owned(), Some(hash.to_owned()));
            verified.await.unwrap()
        };
        assert!(verify("correct horse", &hash).await);
        assert!(!verify("wrong horse", &hash).await);
        let other = passwords
            .hash(&random, "correct horse".to_owned())
            .await
            .unwrap();
        assert_ne!(hash, other);
    }

    #[tokio::test]
    async fn nobody_has_nobodys_password() {
        let passwords = Passwords::default();
        for password in ["nobody's", ""] {
            let verified = passwords.verify(password.to_owned(), None).await;
            assert!(!verified.unwrap());
        }
    }

    #[tokio::test]
    async fn only_so_many_wait() {
        let passwords = Passwords::new(1, 2);
        let verify = || passwords.verify("x".to_owned(), None);
        let answers = futures::future::join_all((0..20).map(|_| verify())).await;
        let turned_away = answers
            .iter()
            .filter(|answer| matches!(answer, Err(HashError::TooMany)));
        assert!((1..20).contains(&turned_away.count()));
        assert!(!verify().await.unwrap());
    }
}
