//! Source of a dispatcher's events.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use event_log::{Batch, Follower, Tail, TailError};
use schemas::{Event, OrgId, Recorded};
use service::Clock;
use tokio::sync::mpsc;

use super::feed;
use crate::people::People;

/// Events taken from a tail at a time.
const BATCH: usize = 256;

/// Positions, with the organizations that each one is for.
#[derive(Debug)]
pub(super) struct Brought {
    pub(super) positions: Vec<(Arc<Recorded>, Vec<OrgId>)>,
    /// The sequence of the last position, whichever organization it is for.
    pub(super) last_sequence: u64,
    /// Up to where endpoints' events must be known to decide which endpoints want them.
    endpoints_through: u64,
}

/// New input for a dispatcher.
pub(super) enum News {
    /// Events, including those of endpoints.
    Events(Batch),
    /// Only events of endpoints.
    Endpoints(Batch),
    /// Positions.
    Positions(Brought),
}

/// Source of a dispatcher's events.
pub(super) enum Source {
    /// The stream of all facts.
    Events(Follower),
    /// The stream of positions, alongside which endpoints are followed.
    Locations {
        endpoints: Box<Tail>,
        positions: mpsc::Receiver<Brought>,
        waiting: Option<Brought>,
    },
}

impl Source {
    /// Waits for new input. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<News, TailError> {
        let (endpoints, positions, waiting) = match self {
            Self::Events(tail) => return tail.next(BATCH).await.map(News::Events),
            Self::Locations {
                endpoints,
                positions,
                waiting,
            } => (endpoints, positions, waiting),
        };
        loop {
            let known = endpoints.last_sequence();
            if let Some(ready) = waiting.take_if(|brought| brought.endpoints_through <= known) {
                return Ok(News::Positions(ready));
            }
            tokio::select! {
                batch = endpoints.next(BATCH) => return batch.map(News::Endpoints),
                Some(brought) = positions.recv(), if waiting.is_none() => {
                    *waiting = Some(brought);
                }
            }
        }
    }
}

/// Sends positions to the dispatcher, once it is known which organizations they are for.
pub(super) async fn bring(
    mut tail: Follower,
    people: People,
    clock: Arc<dyn Clock>,
    to: mpsc::Sender<Brought>,
) -> TailError {
    loop {
        let batch = match tail.next(BATCH).await {
            Ok(batch) => batch,
            Err(error) => return error,
        };
        people.settle().await;
        let last_sequence = batch.last_sequence;
        let brought = Brought {
            positions: addressed(batch, &people, clock.now()),
            last_sequence,
            endpoints_through: people.read(crate::people::Directory::webhooks_through),
        };
        if to.send(brought).await.is_err() {
            // The dispatcher has ended.
            std::future::pending::<()>().await;
        }
    }
}

fn addressed(
    batch: Batch,
    people: &People,
    now: DateTime<Utc>,
) -> Vec<(Arc<Recorded>, Vec<OrgId>)> {
    let mut positions = Vec::new();
    for recorded in batch.into_readable("webhooks") {
        let Event::LocationUpdated(fix) = &recorded.event else {
            continue;
        };
        let orgs: Vec<OrgId> = people.read(|directory| {
            let orgs = directory.circles().current_orgs_of(fix.user_id);
            orgs.into_iter().cloned().collect()
        });
        let may = |org: &OrgId| feed::is_for(&recorded, org, people, now);
        let orgs: Vec<OrgId> = orgs.into_iter().filter(may).collect();
        if !orgs.is_empty() {
            positions.push((recorded, orgs));
        }
    }
    positions
}
