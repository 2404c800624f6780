//! `GET /ws`: live events, an organization's own and those of persons for everyone they share a
//! circle with.
//!
//! One tail of the log serves all sockets of the process ([`hub`]): each event is encoded once
//! for its organization and kept in a bounded ring. A socket is one task that holds a place in
//! each of its subscriptions ([`subscription`]) and takes from the ring only what the client has
//! room for; a client that asks for the past or falls behind the ring is served from the log,
//! page by page, until it has caught up. So nothing is lost, and nothing piles up.
//!
//! The snapshot of `locations` shows everybody's newest position ([`latest`]), that of `sos` the
//! open calls of the last day ([`calls`]). `runs`, `events` and `places` are flows of facts without
//! a latest state of their own, so their snapshot is empty: a client that needs the state as well
//! reads it from the API with the `subscribed` position as `Waypost-Min-Position`, and the flow
//! continues from there.
//!
//! Events of persons ([`fan_out`]) are delivered to those whom the persons' circles let see them
//! ([`visibility`]), once this process knows everything that was in the log when it took the events
//! up. So nobody sees a position even an instant after its person left or hid. A reader that is too
//! slow for all positions gets the newest of each person ([`outbox`]).

mod auth;
mod budget;
mod calls;
mod channel;
mod close;
mod fan_out;
mod flow;
mod frames;
mod hub;
mod latest;
mod outbox;
mod person_subscription;
mod ring;
mod session;
mod settings;
mod snapshot;
mod start;
mod subscriber;
mod subscription;
mod upgrade;
mod visibility;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use access::Access;
use event_log::{Batch, EventLog, Follower, TailError};
use schemas::{AccountId, Log};
use service::Clock;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use close::CloseReason;
use fan_out::{FanOut, Heads};
use flow::CatchUps;
use hub::Hub;
use latest::Latest;

use crate::people::{People, StartError};
use crate::task::Task;

pub use settings::SocketSettings;
pub use upgrade::router;

/// Sockets that may read pages of the log at the same time; viewers share them.
const REPLAYS: usize = 32;
/// Events taken from a tail at a time.
const BATCH: usize = 256;
/// Attempts to get past a fault of the log before the sockets are given up.
const TAIL_ATTEMPTS: u32 = 3;
const TAIL_AGAIN: Duration = Duration::from_secs(1);
/// How long sockets get to say goodbye.
const GOODBYE: Duration = Duration::from_secs(3);

/// The sockets of this process. Clones are the same sockets.
#[derive(Clone)]
pub struct Live {
    access: Access,
    clock: Arc<dyn Clock>,
    settings: Arc<SocketSettings>,
    hub: Hub,
    fan_out: FanOut,
    turns: CatchUps,
    places: Arc<Semaphore>,
    sockets: TaskTracker,
    closing: CancellationToken,
    broken: Arc<AtomicBool>,
}

/// The tails that [`Live::run`] follows.
pub struct Tails {
    events: Follower,
    locations: Follower,
}

impl Live {
    /// Prepares to serve sockets from the log's current end; returns the tails that [`Live::run`]
    /// follows.
    pub async fn start(
        log: EventLog,
        access: Access,
        clock: Arc<dyn Clock>,
        settings: SocketSettings,
    ) -> Result<(Self, Tails), StartError> {
        let (people, events) = People::start(&log).await?;
        let heads = Heads {
            events: events.last_sequence(),
            locations: log.end(Log::Locations).await?.sequence(),
        };
        let locations = log.follow(Log::Locations, heads.locations, &[]).await?;
        let hub = Hub::new(log.clone(), people.clone(), clock.clone(), heads.events);
        let latest = Latest::within(settings.latest_bytes);
        let live = Self {
            hub,
            fan_out: FanOut::new(log, people, access.clone(), clock.clone(), heads, latest),
            access,
            clock,
            turns: CatchUps::new(REPLAYS),
            places: Arc::new(Semaphore::new(settings.max_connections)),
            settings: Arc::new(settings),
            sockets: TaskTracker::new(),
            closing: CancellationToken::new(),
            broken: Arc::default(),
        };
        Ok((live, Tails { events, locations }))
    }

    /// The directory of persons, kept current by [`Live::run`].
    pub fn people(&self) -> People {
        self.fan_out.people().clone()
    }

    /// Delivers events until `shutdown`, then says goodbye to every socket.
    ///
    /// # Errors
    /// If the log cannot be followed: continuing would hide a loss.
    pub async fn run(&self, tails: Tails, shutdown: CancellationToken) -> Result<(), TailError> {
        let fan_out = self.fan_out.clone();
        let _learning = Task::spawn(async move { fan_out.learn_calls().await });
        let ended = tokio::select! {
            () = shutdown.cancelled() => Ok(()),
            error = Box::pin(self.follow_events(tails.events)) => Err(error),
            error = Box::pin(self.follow_locations(tails.locations)) => Err(error),
        };
        self.broken.store(ended.is_err(), Ordering::Relaxed);
        self.closing.cancel();
        self.sockets.close();
        if timeout(GOODBYE, self.sockets.wait()).await.is_err() {
            tracing::warn!("Some sockets were cut off without a close frame");
        }
        ended
    }

    async fn follow_events(&self, mut tail: Follower) -> TailError {
        loop {
            let batch = match next_batch(&mut tail).await {
                Ok(batch) => batch,
                Err(error) => return error,
            };
            self.fan_out.people().take(&batch);
            self.hub.publish(&batch).await;
            self.fan_out.forget(&batch);
            self.fan_out.publish(Log::Events, &batch, None).await;
            self.end_tokens(&batch);
        }
    }

    async fn follow_locations(&self, mut tail: Follower) -> TailError {
        loop {
            let batch = match next_batch(&mut tail).await {
                Ok(batch) => batch,
                Err(error) => return error,
            };
            let asked = Instant::now();
            self.fan_out.settle().await;
            self.fan_out
                .publish(Log::Locations, &batch, Some(asked))
                .await;
        }
    }

    /// Ends the sockets whose tokens these events ended.
    fn end_tokens(&self, batch: &Batch) {
        let mut accounts: Vec<AccountId> = Vec::new();
        for recorded in batch.events() {
            accounts.extend(auth::ends_tokens_of(&recorded.event));
        }
        if accounts.is_empty() {
            return;
        }
        let (live, through) = (self.clone(), self.fan_out.people().accounts_through());
        tokio::spawn(async move {
            let known = live.fan_out.accounts_known(through);
            live.closing.run_until_cancelled(known).await;
            live.fan_out.wake(&accounts);
        });
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

/// The next events of a tail, tolerating a fault or two.
async fn next_batch(tail: &mut Follower) -> Result<Batch, TailError> {
    let mut failures = 0;
    loop {
        match tail.next(BATCH).await {
            Ok(batch) => return Ok(batch),
            Err(error) if failures + 1 < TAIL_ATTEMPTS => {
                failures += 1;
                tracing::warn!(%error, "Sockets: waiting for the log");
                sleep(TAIL_AGAIN).await;
            }
            Err(error) => return Err(error),
        }
    }
}
