//! Waiting on conditions, never on the clock.

use std::time::{Duration, Instant};

/// Polls until `probe` returns a value; fails the test after 20 s with what was waited for.
pub async fn eventually<T>(what: &str, probe: impl AsyncFnMut() -> Option<T>) -> T {
    eventually_within(Duration::from_secs(20), what, probe).await
}

/// Polls until `probe` returns a value, for at most `limit`.
pub async fn eventually_within<T>(
    limit: Duration,
    what: &str,
    mut probe: impl AsyncFnMut() -> Option<T>,
) -> T {
    let end = Instant::now() + limit;
    loop {
        if let Some(value) = probe().await {
            return value;
        }
        assert!(Instant::now() < end, "waited {limit:?} in vain for {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
