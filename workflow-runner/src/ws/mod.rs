//! `GET /ws`: the organization's events, live.
//!
//! One tail of the log serves all sockets of the process ([`hub`]): each event is encoded once
//! for its organization and kept in a bounded ring. A socket is one task that holds a place in
//! each of its subscriptions ([`subscription`]) and takes from the ring only what the client has
//! room for; a client that asks for the past or falls behind the ring is served from the log,
//! page by page, until it has caught up. So nothing is lost, and nothing piles up.
//!
//! `runs` and `events` are flows of facts without a latest state of their own, so their snapshot
//! is empty: whoever needs the state as well reads it from the API with the `subscribed` position
//! as `Waypost-Min-Position`, and the flow goes on from there.

mod auth;
mod budget;
mod channel;
mod close;
mod frames;
mod hub;
mod ring;
mod session;
mod settings;
mod subscription;
mod upgrade;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use access::Access;
use event_log::{EventLog, ReadError, Tail, TailError};
use schemas::Log;
use service::Clock;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use close::CloseReason;
use hub::Hub;

pub use settings::WsSettings;
pub use upgrade::router;

/// Sockets that may read pages of the log at the same time.
const REPLAYS: usize = 32;
/// Events taken from the tail at a time.
const BATCH: usize = 256;
/// Attempts to pass a fault of the log before the sockets are given up.
const TAIL_ATTEMPTS: u32 = 3;
const TAIL_AGAIN: Duration = Duration::from_secs(1);
/// How long sockets get to say goodbye.
const GOODBYE: Duration = Duration::from_secs(3);

/// The sockets of this process. Clones are the same sockets.
#[derive(Clone)]
pub struct Live {
    access: Access,
    clock: Arc<dyn Clock>,
    settings: Arc<WsSettings>,
    hub: Hub,
    replays: Arc<Semaphore>,
    places: Arc<Semaphore>,
    sockets: TaskTracker,
    closing: CancellationToken,
    broken: Arc<AtomicBool>,
}

impl Live {
    /// Makes ready to serve sockets from the log's present end, and gives back what
    /// [`Live::run`] follows.
    pub async fn start(
        log: EventLog,
        access: Access,
        clock: Arc<dyn Clock>,
        settings: WsSettings,
    ) -> Result<(Self, Tail), ReadError> {
        let head = log.end(Log::Events).await?.sequence();
        let tail = log.tail(Log::Events, head, &[]).await?;
        let live = Self {
            hub: Hub::new(log, head),
            access,
            clock,
            replays: Arc::new(Semaphore::new(REPLAYS)),
            places: Arc::new(Semaphore::new(settings.max_connections)),
            settings: Arc::new(settings),
            sockets: TaskTracker::new(),
            closing: CancellationToken::new(),
            broken: Arc::default(),
        };
        Ok((live, tail))
    }

    /// Hands out events until `shutdown`, then says goodbye to every socket.
    ///
    /// # Errors
    /// Where the log cannot be followed: going on would hide a loss.
    pub async fn run(&self, tail: Tail, shutdown: CancellationToken) -> Result<(), TailError> {
        let ended = tokio::select! {
            () = shutdown.cancelled() => Ok(()),
            error = self.follow(tail) => Err(error),
        };
        self.broken.store(ended.is_err(), Ordering::Relaxed);
        self.closing.cancel();
        self.sockets.close();
        if timeout(GOODBYE, self.sockets.wait()).await.is_err() {
            tracing::warn!("Some sockets were cut off without a goodbye");
        }
        ended
    }

    async fn follow(&self, mut tail: Tail) -> TailError {
        let mut failures = 0;
        loop {
            match tail.next(BATCH).await {
                Ok(batch) => {
                    failures = 0;
                    self.hub.publish(&batch);
                }
                Err(error) if failures + 1 < TAIL_ATTEMPTS => {
                    failures += 1;
                    tracing::warn!(%error, "Sockets wait for the log");
                    sleep(TAIL_AGAIN).await;
                }
                Err(error) => return error,
            }
        }
    }

    /// Why this process ends its connections.
    fn closing_reason(&self) -> CloseReason {
        if self.broken.load(Ordering::Relaxed) {
            CloseReason::LogBroken
        } else {
            CloseReason::ShuttingDown
        }
    }
}
