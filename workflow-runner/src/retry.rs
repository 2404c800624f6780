//! Waits for the log where no work is possible without it.

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use tokio::time::sleep;

/// The first pause when the log does not answer.
const PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Retries until the log answers; `waits` says which errors are temporary.
pub(crate) async fn retry_while<T, E, F>(
    mut ask: impl FnMut() -> F,
    waits: impl Fn(&E) -> bool,
) -> Result<T, E>
where
    E: Display,
    F: Future<Output = Result<T, E>>,
{
    let mut pause = PAUSE;
    loop {
        match ask().await {
            Err(error) if waits(&error) => {
                tracing::debug!(%error, "Waiting for the log");
                sleep(pause).await;
                pause = (pause * 2).min(MAX_PAUSE);
            }
            answer => return answer,
        }
    }
}
