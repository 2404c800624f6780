//! The jobs in progress, and how many more there may be.

use std::collections::HashMap;

use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};

use super::backlog::RunRef;
use super::capacity::Working;
use super::index::RunKey;
use super::job::{Job, Outcome};
use super::turn::Turn;

/// The jobs of this process, at most one per run.
pub(super) struct WorkerPool {
    size: usize,
    jobs: JoinSet<Outcome>,
    tasks: HashMap<Id, (Turn, RunRef)>,
    under_way: HashMap<RunKey, WorkerHandle>,
    /// How many jobs each organization has.
    shares: HashMap<Turn, usize>,
}

/// Notifies a job of what others have done to its run.
pub(super) struct WorkerHandle {
    pub(super) ended: watch::Sender<u64>,
    pub(super) news: watch::Sender<u64>,
}

/// A job that has ended; `Err` if it failed.
pub(super) struct Ended {
    pub(super) turn: Turn,
    pub(super) run: RunRef,
    pub(super) outcome: Result<Outcome, JoinError>,
}

impl WorkerPool {
    pub(super) fn new(size: usize) -> Self {
        Self {
            size: size.max(1),
            jobs: JoinSet::new(),
            tasks: HashMap::new(),
            under_way: HashMap::new(),
            shares: HashMap::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// One organization has at most as many jobs as there are free places, so that some are always
    /// left for others.
    pub(super) fn has_room_for(&self, turn: Turn) -> bool {
        let share = self.shares.get(&turn.org()).copied().unwrap_or_default();
        share < self.size.saturating_sub(self.jobs.len())
    }

    pub(super) fn works_on(&self, key: RunKey) -> bool {
        self.under_way.contains_key(&key)
    }

    pub(super) fn start(
        &mut self,
        run: RunRef,
        job: Job,
        working: Option<Working>,
        handle: WorkerHandle,
    ) {
        let turn = job.turn;
        self.under_way.insert(run.1, handle);
        *self.shares.entry(turn.org()).or_default() += 1;
        let id = self.jobs.spawn(job.run(working)).id();
        self.tasks.insert(id, (turn, run));
    }

    /// Notifies a run's job that an event, mostly one of another writer, has ended the run.
    pub(super) fn call_off(&self, key: RunKey, sequence: u64) {
        if let Some(job) = self.under_way.get(&key) {
            job.ended.send_replace(sequence);
        }
    }

    /// Notifies a run's job of an event; it knows its own.
    pub(super) fn tell(&self, key: RunKey, sequence: u64) {
        if let Some(job) = self.under_way.get(&key) {
            job.news.send_replace(sequence);
        }
    }

    /// Waits for a job to end; `None` at once if there is none.
    pub(super) async fn next_ended(&mut self) -> Option<Ended> {
        let joined = self.jobs.join_next_with_id().await?;
        let (id, outcome) = match joined {
            Ok((id, outcome)) => (id, Ok(outcome)),
            Err(error) => (error.id(), Err(error)),
        };
        let (turn, run) = self.tasks.remove(&id)?;
        self.under_way.remove(&run.1);
        if let Some(share) = self.shares.get_mut(&turn.org()) {
            *share -= 1;
            if *share == 0 {
                self.shares.remove(&turn.org());
            }
        }
        Some(Ended { turn, run, outcome })
    }

    /// Aborts the jobs still in progress.
    pub(super) async fn cut_off(&mut self) {
        self.jobs.shutdown().await;
    }
}
