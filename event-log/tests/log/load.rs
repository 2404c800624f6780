//! Load on the log, and a record of the answers to its callers.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use event_log::{AppendError, Commit, EventLog, Position};
use schemas::{EventId, Log};
use tokio::task::JoinSet;

use crate::support::{assert_stored_at, everything, fresh, ids};

/// A caller's commit and its outcome.
pub(crate) struct Told {
    pub(crate) events: Vec<EventId>,
    pub(crate) outcome: Result<Position, AppendError>,
}

impl Told {
    pub(crate) fn new(commit: &Commit, outcome: Result<Position, AppendError>) -> Self {
        let events = ids(commit);
        Self { events, outcome }
    }
}

/// Callers that append without end, each the next commit as soon as it has the last outcome.
pub(crate) struct Load {
    callers: JoinSet<Vec<Told>>,
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicUsize>,
}

impl Load {
    pub(crate) fn start(log: &EventLog, callers: usize, largest: usize) -> Self {
        let (stop, acknowledged) = (Arc::default(), Arc::default());
        let mut load = Self {
            callers: JoinSet::new(),
            stop,
            acknowledged,
        };
        for caller in 0..callers {
            let log = log.clone();
            let (stop, acknowledged) = (load.stop.clone(), load.acknowledged.clone());
            load.callers.spawn(async move {
                let mut told = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let commit = fresh(1 + (caller + told.len()) % largest);
                    let outcome = log.commit(commit.clone()).await;
                    if outcome.is_ok() {
                        acknowledged.fetch_add(1, Ordering::Relaxed);
                    } else {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                    told.push(Told::new(&commit, outcome));
                }
                told
            });
        }
        load
    }

    /// Waits until this many more commits are acknowledged.
    pub(crate) async fn acknowledges(&self, more: usize) {
        let goal = self.acknowledged.load(Ordering::Relaxed) + more;
        let reached = async {
            while self.acknowledged.load(Ordering::Relaxed) < goal {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let limit = Duration::from_secs(30);
        let healed = tokio::time::timeout(limit, reached).await;
        assert!(healed.is_ok(), "the log must take appends again by itself");
    }

    pub(crate) async fn stop(mut self) -> Vec<Told> {
        self.stop.store(true, Ordering::Relaxed);
        let mut told = Vec::new();
        while let Some(caller) = self.callers.join_next().await {
            told.extend(caller.unwrap());
        }
        told
    }
}

/// What was acknowledged is in the log once and at the acknowledged position. Of the rest, each
/// commit is there whole or not at all. Nothing else is there.
pub(crate) async fn assert_told_the_truth(log: &EventLog, told: &[Told]) {
    let all = everything(log, Log::Events).await;
    let places = all.iter().zip(1..).map(|(event, place)| {
        assert_eq!(event.sequence, place, "a hole");
        (event.id, place)
    });
    let places: HashMap<EventId, u64> = places.collect();
    let mut known = HashSet::new();
    for Told { events, outcome } in told {
        match outcome {
            Ok(position) => assert_stored_at(&all, *position, events),
            Err(AppendError::Unavailable(_)) => {
                let found: Vec<u64> = events
                    .iter()
                    .filter_map(|id| places.get(id).copied())
                    .collect();
                let whole =
                    found.len() == events.len() && found.windows(2).all(|p| p[0] + 1 == p[1]);
                assert!(found.is_empty() || whole, "{found:?} of {events:?}");
            }
            Err(error) => panic!("{error} on an aggregate that nobody else knows"),
        }
        known.extend(events.iter().copied());
    }
    assert!(all.iter().all(|event| known.contains(&event.id)));
}
