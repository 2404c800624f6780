//! Passwords: hashed slowly, away from the threads that answer requests, and a limited number at a
//! time.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use argon2::password_hash;
use background::processors;
use domain::account::may_be_password;
use tokio::time::timeout;

use super::argon::Argon;
use super::network::Network;
use super::password_queue::{Lane, NoTurn, PasswordQueue, Room, Visitor};
use crate::{LogError, Random};

/// Default number of passwords that may wait for their turn.
pub(super) const ROOM: Room = Room {
    in_lane: 200,
    of_network: 100,
};
/// How long they wait: well under the half minute after which most clients give up, so that they
/// learn when to retry.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Hashes passwords with argon2id. Each takes a processor and 19 MiB for some 20 ms, so only a
/// limited number run at once, for known clients and for strangers. Some more wait for their turn,
/// and any beyond that are rejected.
#[derive(Clone, Debug)]
pub struct Passwords(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    queue: PasswordQueue,
    timeout: Duration,
    argon: Argon,
    /// The hash of no account's password: verified against if there is no account, so that it takes
    /// as long as if there is one.
    nobodys: OnceLock<String>,
}

/// Why nothing was hashed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HashError {
    /// Too many wait already, or the machine is too slow for those who do.
    #[error("too many sign-ins at once")]
    TooMany,
    /// Too many of them from this one network.
    #[error("too many sign-ins at once from this address")]
    TooManyOfOne,
    /// An unexpected error.
    #[error("{0}")]
    Broken(String),
}

impl From<password_hash::Error> for HashError {
    fn from(error: password_hash::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

impl From<HashError> for LogError {
    fn from(error: HashError) -> Self {
        match error {
            HashError::TooMany => Self::Overloaded,
            HashError::TooManyOfOne => Self::TooManyAtOnce,
            HashError::Broken(reason) => Self::Broken(reason),
        }
    }
}

impl From<NoTurn> for HashError {
    fn from(none: NoTurn) -> Self {
        match none {
            NoTurn::TooManyOfOne => Self::TooManyOfOne,
            NoTurn::TooMany | NoTurn::Late => Self::TooMany,
        }
    }
}

/// The address of operators.
const OPERATOR: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

impl Visitor {
    /// The operator works on the machine itself and counts as known.
    pub(super) fn operator() -> Self {
        Self {
            lane: Lane::Known,
            network: Network::of(OPERATOR),
        }
    }
}

/// All processors but one, which is left for everything else.
pub(super) fn at_once() -> usize {
    processors().saturating_sub(1).max(1)
}

impl Default for Passwords {
    fn default() -> Self {
        Self::new(at_once(), ROOM, TIMEOUT)
    }
}

impl Passwords {
    /// Runs `at_once` hashes at once for known clients and as many for strangers; `room` more may
    /// wait, for up to `timeout`.
    pub(super) fn new(at_once: usize, room: Room, timeout: Duration) -> Self {
        Self(Arc::new(Inner {
            queue: PasswordQueue::new(at_once, room),
            timeout,
            argon: Argon::default(),
            nobodys: OnceLock::new(),
        }))
    }

    /// Hashes a password that the operator made, under a salt of its own.
    pub(crate) async fn hash(
        &self,
        random: &Random,
        password: String,
    ) -> Result<String, HashError> {
        self.hash_for(Visitor::operator(), random, password).await
    }

    /// Hashes a password under a salt of its own.
    pub(crate) async fn hash_for(
        &self,
        visitor: Visitor,
        random: &Random,
        password: String,
    ) -> Result<String, HashError> {
        let salt: [u8; 16] = random.bytes();
        self.in_turn(visitor, move |inner| {
            let hash = inner.argon.hash(password.as_bytes(), &salt)?;
            Ok(hash)
        })
        .await?
    }

    /// Whether a password is the one of a hash. Without a hash it is not, and finding that out
    /// takes as long. What cannot be a password is compared as the empty one, which nobody has.
    pub(crate) async fn verify_for(
        &self,
        visitor: Visitor,
        password: String,
        expected: Option<String>,
    ) -> Result<bool, HashError> {
        self.in_turn(visitor, move |inner| {
            let known = expected.is_some();
            let expected = match expected {
                Some(expected) => expected,
                None => inner.nobodys()?,
            };
            let password = if may_be_password(&password) {
                password.as_str()
            } else {
                ""
            };
            let right = inner.argon.verify(password.as_bytes(), &expected)?;
            Ok(right && known)
        })
        .await?
    }

    async fn in_turn<T: Send + 'static>(
        &self,
        visitor: Visitor,
        work: impl FnOnce(&Inner) -> T + Send + 'static,
    ) -> Result<T, HashError> {
        let inner = self.0.clone();
        let entered = timeout(inner.timeout, inner.queue.enter(visitor)).await;
        let turn = entered.unwrap_or(Err(NoTurn::Late)).inspect_err(|none| {
            let lane = visitor.lane.name();
            let reason = none.name();
            metrics::counter!("waypost_passwords_refused_total", "lane" => lane, "reason" => reason)
                .increment(1);
        })?;
        let broken = |error: &dyn Error| HashError::Broken(error.to_string());
        // Requests of strangers yield to everything else.
        if !visitor.lane.is_known() {
            let done = background::compute_and_rest(move || work(&inner), turn);
            return done.await.map_err(|error| broken(&error));
        }
        let work = move || {
            let done = work(&inner);
            // Not before: the caller may go away while the work continues.
            drop(turn);
            done
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|error| broken(&error))
    }
}

impl Inner {
    fn nobodys(&self) -> Result<String, HashError> {
        if let Some(known) = self.nobodys.get() {
            return Ok(known.clone());
        }
        let made = self.argon.hash(b"nobody's", &[0; 16])?;
        Ok(self.nobodys.get_or_init(|| made).clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visitor() -> Visitor {
        Visitor {
            lane: Lane::SignIn,
            network: Network::of(OPERATOR),
        }
    }

    #[tokio::test]
    async fn a_hash_opens_for_its_password_alone() {
        let (passwords, random) = (Passwords::default(), Random::default());
        let hash = passwords
            .hash(&random, "correct horse".to_owned())
            .await
            .unwrap();
        assert!(hash.starts_with("$argon2id$"));
        let verify = async |password: &str, hash: &str| {
            let (password, hash) = (password.to_owned(), Some(hash.to_owned()));
            let verified = passwords.verify_for(visitor(), password, hash);
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
            let verified = passwords.verify_for(visitor(), password.to_owned(), None);
            assert!(!verified.await.unwrap());
        }
    }

    #[tokio::test]
    async fn only_so_many_wait() {
        let room = Room {
            in_lane: 10,
            of_network: 2,
        };
        let passwords = Passwords::new(1, room, TIMEOUT);
        let verify = || passwords.verify_for(visitor(), "x".to_owned(), None);
        let answers = futures::future::join_all((0..20).map(|_| verify())).await;
        let turned_away = answers
            .iter()
            .filter(|answer| matches!(answer, Err(HashError::TooManyOfOne)));
        assert_eq!(turned_away.count(), 17, "one at work, two waiting");
        assert!(!verify().await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_longer_than_clients_do() {
        let passwords = Passwords::new(1, ROOM, TIMEOUT);
        let verify = || passwords.verify_for(visitor(), "x".to_owned(), None);
        let turn = passwords.0.queue.enter(visitor()).await.unwrap();
        assert!(matches!(verify().await, Err(HashError::TooMany)));
        drop(turn);
        assert!(!verify().await.unwrap());
    }
}
