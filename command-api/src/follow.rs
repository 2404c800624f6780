//! Follows the log into state that a process keeps in memory.

use std::sync::Arc;
use std::time::Duration;

use event_log::{EventLog, ReadError, Tail};
use schemas::{AggregateType, Log, Recorded};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

const BATCH: usize = 1_000;
const BACKOFF: Duration = Duration::from_secs(1);
/// How long a caller waits until its change is known here.
pub(crate) const LEARNING: Duration = Duration::from_millis(500);

/// Passes all events of the given aggregate types after the sequence `after` (0: from the first
/// event) to `take_in`, batch by batch: existing events before this returns, then new ones in the
/// background until `shutdown`. Returns a receiver of the sequence that has been taken in. `what`
/// names the state in log lines.
pub(crate) async fn follow(
    log: &EventLog,
    after: u64,
    kinds: &[AggregateType],
    what: &'static str,
    take_in: impl Fn(Vec<Recorded>) + Send + 'static,
    shutdown: CancellationToken,
) -> Result<watch::Receiver<u64>, ReadError> {
    let tail = log.tail(Log::Events, after, kinds).await?;
    let (reaching, reached) = watch::channel(after);
    let (ready, first) = oneshot::channel();
    tokio::spawn(async move {
        let following = keep_following(tail, what, take_in, reaching, ready);
        shutdown.run_until_cancelled(following).await;
    });
    // An error means that the process is shutting down already.
    let _ = first.await;
    Ok(reached)
}

/// Waits briefly until this process knows of a change, so that the client sees it with its next
/// request.
pub(crate) async fn until(known: impl Fn() -> bool, what: &'static str) {
    let known = async {
        while !known() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    if tokio::time::timeout(LEARNING, known).await.is_err() {
        tracing::warn!(what, "This process has not seen the change yet");
    }
}

async fn keep_following(
    mut tail: Tail,
    what: &'static str,
    take_in: impl Fn(Vec<Recorded>),
    reaching: watch::Sender<u64>,
    ready: oneshot::Sender<()>,
) {
    let mut ready = Some(ready);
    loop {
        if tail.caught_up()
            && let Some(ready) = ready.take()
        {
            let _ = ready.send(());
        }
        match tail.next(BATCH).await {
            Ok(batch) => {
                let last = batch.last_sequence;
                take_in(
                    batch
                        .into_readable(what)
                        .map(Arc::unwrap_or_clone)
                        .collect(),
                );
                reaching.send_replace(last);
            }
            Err(error) => {
                tracing::error!(%error, what, "Cannot follow the log");
                tokio::time::sleep(BACKOFF).await;
            }
        }
    }
}
