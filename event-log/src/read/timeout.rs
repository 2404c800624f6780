//! How long a reader waits for the server.

use std::future::Future;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::Client;
use tokio::time::{Instant, timeout};

use super::silence;
use crate::{ReadError, connection};

/// The server continues with a request whether or not the caller still waits. On a machine that is
/// too busy, callers that ask again instead of waiting leave it no time for anything else.
const OF_FOLLOWERS: Duration = Duration::from_secs(30);
/// How often a long wait checks whether the connection is still the one it asked on: a request on
/// another one is never answered.
const LOOK: Duration = Duration::from_millis(250);

/// How long the server may be silent.
#[derive(Clone, Copy)]
pub(crate) struct ReadTimeout(Duration);

impl ReadTimeout {
    /// That of followers of the log, for which nobody waits by the second.
    pub(crate) const LONG: Self = Self(OF_FOLLOWERS);

    /// That of callers that have promised an answer within a time.
    pub(crate) fn of(time: Duration) -> Self {
        Self(time)
    }

    /// Waits for an answer.
    pub(crate) fn wait<T>(
        self,
        client: &Client,
        answer: impl Future<Output = T>,
    ) -> impl Future<Output = Result<T, ReadError>> {
        // Inline, it would make the caller's future larger.
        let mut answer = Box::pin(answer);
        let (asked, connects) = (Instant::now(), connects(client));
        async move {
            loop {
                let left = self.0.saturating_sub(asked.elapsed());
                match timeout(left.min(LOOK), &mut answer).await {
                    Ok(answer) => return Ok(answer),
                    Err(_) if left <= LOOK || connects != self::connects(client) => {
                        return Err(silence());
                    }
                    Err(_) => connection::check(client).map_err(ReadError::Unavailable)?,
                }
            }
        }
    }
}

/// How often a client has been connected.
fn connects(client: &Client) -> u64 {
    client.statistics().connects.load(Ordering::Relaxed)
}
