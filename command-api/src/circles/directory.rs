//! The circles that people share, kept in memory.

use std::sync::{Arc, PoisonError, RwLock};

use domain::circles::Circles;
use event_log::{EventLog, Fold, FoldCheckpoint, Position, ReadError};
use schemas::circle::CircleOwner;
use schemas::{CircleId, OrgId, Recorded, SYSTEM_ORG};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::Origin;
use crate::commands::Outcome;
use crate::follow::{LEARNING, follow};

/// All circles, folded from the log. They may briefly lag behind what another process wrote.
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
    /// Reads all circles, starting from the runner's last checkpoint, then follows the log in the
    /// background until `shutdown`.
    pub async fn start(log: EventLog, shutdown: CancellationToken) -> Result<Self, ReadError> {
        let checkpoint = FoldCheckpoint::open(&log, Fold::Circles, Circles::FORM).await?;
        let (through, circles): (u64, Circles) = checkpoint.read().await.unwrap_or_default();
        let circles = Arc::new(RwLock::new(circles));
        let kinds = Fold::Circles.kinds();
        let folded = circles.clone();
        let take_in = move |events: Vec<Recorded>| {
            let mut circles = folded.write().unwrap_or_else(PoisonError::into_inner);
            for event in &events {
                circles.apply(event);
            }
        };
        let reached = follow(&log, through, kinds, "circles", take_in, shutdown).await?;
        Ok(Self { circles, reached })
    }

    /// Reads the circles as they are currently known.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Circles) -> T) -> T {
        look(&self.circles.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The part of the log that a circle is in.
    pub(crate) fn org_of(&self, id: &CircleId) -> OrgId {
        let org = self.look(|circles| match &circles.circle(id)?.owner {
            CircleOwner::Organization(org) => Some(org.clone()),
            CircleOwner::Account(_) => None,
        });
        org.unwrap_or_else(|| OrgId::from(SYSTEM_ORG))
    }

    /// Returns the outcome of a command once this process knows of it.
    pub(crate) async fn learned<T>(&self, origin: &Origin, outcome: Outcome<T>) -> Outcome<T> {
        if let Outcome::First(done) = &outcome {
            self.learn(done.position, origin).await;
        }
        outcome
    }

    /// Waits briefly until what was written at a position is known here, so that the client sees it
    /// with its next request.
    pub(crate) async fn learn(&self, position: Position, origin: &Origin) {
        // The claim of an `Idempotency-Key` is the last in its commit, right after what is followed
        // here.
        let claims = u64::from(origin.receipt.is_some());
        let sequence = position.sequence().saturating_sub(claims);
        let mut reached = self.reached.clone();
        let known = reached.wait_for(|reached| *reached >= sequence);
        if tokio::time::timeout(LEARNING, known).await.is_err() {
            tracing::warn!("This process has not seen a circle's change yet");
        }
    }
}
