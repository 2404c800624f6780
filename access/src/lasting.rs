//! Work that outlives the check of its request: it ends with its key, and is charged for what it
//! continues to do.

use std::time::Duration;

use tokio::time::sleep;

use crate::directory::Credential;
use crate::{Access, Caller, Person, Refusal};

/// How often the clock is checked: an expired key is noticed within this time, even if the clock is
/// set to another time.
const LOOK: Duration = Duration::from_millis(500);

impl Access {
    /// Waits until a key is revoked or expires, or a session ends. Anything that lasts longer than
    /// a request ends with this, however it is held up: incoming lines, feeds, exports and sockets.
    pub fn ended(&self, caller: &Caller) -> impl Future<Output = ()> + Send + use<> {
        let (clock, revoked) = (self.0.clock.clone(), caller.revoked.clone());
        let expires_at = caller.expires_at;
        let signed_out = self.signed_out(caller);
        let expired = async move {
            let Some(expires_at) = expires_at else {
                return std::future::pending().await;
            };
            while let Ok(left) = (expires_at - clock.now()).to_std()
                && !left.is_zero()
            {
                sleep(left.min(LOOK)).await;
            }
        };
        async move {
            tokio::select! {
                () = revoked.cancelled() => (),
                () = expired => (),
                () = signed_out => (),
            }
        }
    }

    /// Waits until a session ends; a key has none.
    fn signed_out(&self, caller: &Caller) -> impl Future<Output = ()> + Send + use<> {
        let session = match &caller.credential {
            Credential::Key { .. } => None,
            Credential::Session(person) => Some(self.token_ended(person)),
        };
        async move {
            match session {
                Some(ended) => ended.await,
                None => std::future::pending().await,
            }
        }
    }

    /// Waits until a person's token ends: by a sign-out, by a password change, by expiry, or with
    /// the account.
    pub fn token_ended(&self, person: &Person) -> impl Future<Output = ()> + Send + use<> {
        let (access, person) = (self.clone(), person.clone());
        async move {
            while access.person_is_good(&person) {
                sleep(LOOK).await;
            }
        }
    }

    /// Counts one more request against a key's own limit, for a request that continues with what
    /// would otherwise take several.
    pub async fn count_again(&self, caller: &Caller) -> Result<(), Refusal> {
        let limiter = &self.0.limiter;
        let decision = limiter.check(&caller.hourly, caller.rate_limit, 1).await;
        match decision.retry_after {
            None => Ok(()),
            Some(retry_after) => Err(Refusal::LimitReached { retry_after }),
        }
    }
}
