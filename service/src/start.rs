//! Starting while a required server is unavailable.

use std::fmt::Display;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

const AGAIN: Duration = Duration::from_secs(1);

/// Starts something, and retries as long as it fails only because a server is unavailable or not
/// ready yet: a service that ended instead would have to be started by hand, or wait longer and
/// longer for its supervisor to restart it.
///
/// Each try has a token of its own, a child of `shutdown`. It is cancelled if the try fails, so
/// that nothing of it continues.
///
/// # Errors
/// If it fails for another reason. Returns `None` if `shutdown` came first.
pub async fn once_there<T, E: Display>(
    shutdown: &CancellationToken,
    is_away: impl Fn(&E) -> bool,
    start: impl AsyncFn(CancellationToken) -> Result<T, E>,
) -> Result<Option<T>, E> {
    let starting = async {
        loop {
            let stop = shutdown.child_token();
            // The future that starts a whole service is large, and exists only once: it belongs on
            // the heap.
            match Box::pin(start(stop.clone())).await {
                Err(error) if is_away(&error) => {
                    stop.cancel();
                    tracing::warn!(%error, "Waiting for what this service needs");
                    sleep(AGAIN).await;
                }
                done => return done,
            }
        }
    };
    shutdown.run_until_cancelled(starting).await.transpose()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_a_try_began_ends_with_it_and_the_last_goes_on() {
        let (shutdown, tries) = (CancellationToken::new(), RefCell::new(Vec::new()));
        let started = once_there(
            &shutdown,
            |error| *error == "away",
            async |stop| {
                let mut tries = tries.borrow_mut();
                tries.push(stop);
                (tries.len() == 3).then_some("started").ok_or("away")
            },
        );
        assert_eq!(started.await, Ok(Some("started")));
        let ended: Vec<_> = tries
            .borrow()
            .iter()
            .map(CancellationToken::is_cancelled)
            .collect();
        assert_eq!(ended, [true, true, false]);
        shutdown.cancel();
        assert!(tries.borrow()[2].is_cancelled());
    }

    #[tokio::test]
    async fn any_other_failure_is_returned_at_once() {
        let shutdown = CancellationToken::new();
        let start = async |_| Err::<(), _>("another master key");
        let started = once_there(&shutdown, |error| *error == "away", start);
        assert_eq!(started.await, Err("another master key"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_waits_can_be_stopped() {
        let shutdown = CancellationToken::new();
        let stopped = shutdown.clone();
        tokio::spawn(async move {
            sleep(Duration::from_secs(10)).await;
            stopped.cancel();
        });
        let started = once_there(&shutdown, |_| true, async |_| Err::<(), _>("away"));
        assert_eq!(started.await, Ok(None));
    }
}
