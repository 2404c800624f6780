//! Who shares circles with whom, kept in memory.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use domain::circles::Circles;
use event_log::{Batch, EventLog, Item, Position, ReadError, SYSTEM_ORG, Tail};
use schemas::circle::CircleOwner;
use schemas::{AggregateType, CircleId, Log, OrgId};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::Origin;

const BATCH: usize = 1_000;
const BACKOFF: Duration = Duration::from_secs(1);
/// How long whoever changed something waits until it is known here.
const LEARNING: Duration = Duration::from_millis(500);

/// All circles, folded from the log. They may lag by a moment behind what another process wrote.
#[derive(Clone)]
pub struct Directory {
    circles: Arc<RwLock<Circles>>,
    reached: watch::Receiver<u64>,
}

impl std::fmt::Debug for Directory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Directory(…)")
    }
}

impl Directory {
    /// Reads all that was ever written, then follows in the background until `shutdown`.
    pub async fn start(log: EventLog, shutdown: CancellationToken) -> Result<Self, ReadError> {
        let kinds = [AggregateType::Circle, AggregateType::Account];
        let tail = log.tail(Log::Events, 0, &kinds).await?;
        let (reaching, reached) = watch::channel(0);
        let directory = Self {
            circles: Arc::default(),
            reached,
        };
        let (ready, first) = oneshot::channel();
        let follower = directory.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = follower.follow(tail, reaching, ready) => (),
                () = shutdown.cancelled() => (),
            }
        });
        // An error means that the process is shutting down already.
        let _ = first.await;
        Ok(directory)
    }

    async fn follow(
        &self,
        mut tail: Tail,
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
                    self.take_in(batch);
                    reaching.send_replace(last);
                }
                Err(error) => {
                    tracing::error!(%error, "Circles cannot be followed");
                    tokio::time::sleep(BACKOFF).await;
                }
            }
        }
    }

    fn take_in(&self, batch: Batch) {
        let circles = self.circles.write();
        let mut circles = circles.unwrap_or_else(PoisonError::into_inner);
        for item in batch.items {
            match item {
                Item::Event(event) => circles.apply(&event),
                Item::Undecodable {
                    sequence, reason, ..
                } => tracing::error!(sequence, reason, "An event of a circle cannot be read"),
            }
        }
    }

    /// Looks at the circles as they are known now.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Circles) -> T) -> T {
        look(&self.circles.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The part of the log where a circle stands.
    pub(crate) fn org_of(&self, id: &CircleId) -> OrgId {
        let org = self.look(|circles| match &circles.circle(id)?.owner {
            CircleOwner::Organization(org) => Some(org.clone()),
            CircleOwner::Account(_) => None,
        });
        org.unwrap_or_else(|| OrgId::from(SYSTEM_ORG))
    }

    /// Waits a moment until what was written at a position is known here, so that whoever wrote it
    /// meets it with the next request.
    pub(crate) async fn learn(&self, position: Position, origin: &Origin) {
        // The claim of an `Idempotency-Key` stands last in its commit, right behind what is
        // followed here.
        let claims = u64::from(origin.receipt.is_some());
        let sequence = position.sequence().saturating_sub(claims);
        let mut reached = self.reached.clone();
        let known = reached.wait_for(|reached| *reached >= sequence);
        if tokio::time::timeout(LEARNING, known).await.is_err() {
            tracing::warn!("A change of a circle is not known here yet");
        }
    }
}
