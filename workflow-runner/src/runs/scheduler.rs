//! Follows the log, keeps the open runs of the partitions that this process owns, and gives each
//! run that is to be carried on to a job.

mod jobs;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use event_log::{Batch, Follower, Item, TailError};
use schemas::{Event, Recorded};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::backlog::{Backlog, RunRef};
use super::catch_up::{CaughtUp, catch_up};
use super::held::HeldTriggers;
use super::index::{Change, Partition, Phase, RunKey, run_of};
use super::job::Shared;
use super::open::OpenRuns;
use super::settings::RunSettings;
use super::turn::Turn;
use super::worker_pool::WorkerPool;
use super::{SchedulerState, measure};
use crate::checkpoints::{Checkpoints, Saving};
use crate::leases::{Leases, Owned, OwnedPartitions, partition_of};

const EVENTS_AT_ONCE: usize = 512;
const TAIL_AGAIN: Duration = Duration::from_millis(250);
/// A timer further away than this is checked again after this time.
const LONGEST_SLEEP: Duration = Duration::from_hours(1);

pub(super) struct Scheduler {
    shared: Arc<Shared>,
    settings: RunSettings,
    saving: Saving<Partition>,
    state: Arc<AtomicU8>,
    owned: watch::Receiver<Owned>,
    partitions: OwnedPartitions<Partition>,
    catching_up: JoinSet<CaughtUp>,
    tail: Option<Follower>,
    backlog: Backlog,
    /// Triggers of runs in the backlog.
    triggers: HeldTriggers,
    timers: BTreeSet<(DateTime<Utc>, RunRef)>,
    workers: WorkerPool,
    open_runs: OpenRuns,
}

impl Scheduler {
    pub(super) fn new(
        shared: Arc<Shared>,
        settings: RunSettings,
        checkpoints: Checkpoints<Partition>,
        state: Arc<AtomicU8>,
        open_runs: OpenRuns,
    ) -> Self {
        open_runs.begin_anew();
        Self {
            owned: shared.leases.owned(),
            workers: WorkerPool::new(shared.capacity.runs()),
            shared,
            saving: Saving::new(checkpoints, settings.checkpoint / 2),
            settings,
            state,
            partitions: OwnedPartitions::default(),
            catching_up: JoinSet::new(),
            tail: None,
            backlog: Backlog::default(),
            triggers: HeldTriggers::default(),
            timers: BTreeSet::new(),
            open_runs,
        }
    }

    pub(super) async fn run(mut self, shutdown: CancellationToken) {
        let mut checkpoint = interval(self.settings.checkpoint);
        checkpoint.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.reassign();
        let capacity = self.shared.capacity.clone();
        loop {
            self.start_what_fits();
            self.report_state();
            let timer = self.next_timer();
            tokio::select! {
                () = shutdown.cancelled() => break,
                changed = self.owned.changed() => match changed {
                    Ok(()) => self.reassign(),
                    Err(_) => break,
                },
                Some(caught_up) = self.catching_up.join_next() => self.take_over(caught_up),
                Some(ended) = self.workers.next_ended() => self.job_ended(ended),
                () = capacity.freed() => {}
                batch = next_batch(&mut self.tail) => self.take_in(batch).await,
                () = sleep(timer) => self.wake(),
                _ = checkpoint.tick() => {
                    self.measure();
                    self.save();
                }
                () = self.saving.ended() => {}
            }
        }
        self.end().await;
    }

    /// Releases partitions that are no longer ours and starts to take over new ones.
    fn reassign(&mut self) {
        let owned = Arc::clone(&self.owned.borrow_and_update());
        self.saving.retain(&owned);
        let changed = self.partitions.change(&owned);
        for (_, partition) in &changed.lost {
            self.open_runs.let_go(partition);
        }
        if !changed.gained.is_empty() {
            let (log, checkpoints) = (self.shared.log.clone(), self.saving.checkpoints().clone());
            let wanted = (changed.round, changed.gained);
            self.catching_up.spawn(catch_up(log, checkpoints, wanted));
        }
    }

    fn take_over(&mut self, caught_up: Result<CaughtUp, JoinError>) {
        let caught_up = match caught_up {
            Ok(caught_up) => caught_up,
            Err(error) => {
                tracing::error!(%error, "Taking over runs failed");
                self.partitions.give_up_coming();
                return self.reassign();
            }
        };
        let CaughtUp {
            round,
            folded,
            mut triggers,
            tail,
        } = caught_up;
        // The tail that starts earlier serves both old and new partitions.
        let reached = tail.last_sequence();
        if self
            .tail
            .as_ref()
            .is_none_or(|own| own.last_sequence() > reached)
        {
            self.tail = Some(tail);
        }
        for (number, partition) in folded {
            // It may have been lost again meanwhile.
            if self.partitions.serve(number, round, partition).is_ok() {
                self.begin_serving(number, &mut triggers);
            }
        }
    }

    fn begin_serving(&mut self, number: u16, triggers: &mut HeldTriggers) {
        let Some(partition) = self.partitions.get_mut(number) else {
            return;
        };
        for (key, open) in &mut partition.open {
            let run = (number, *key);
            if self.workers.works_on(*key) {
                open.phase = Phase::UnderWay;
            }
            match open.phase {
                Phase::Ready => {
                    if let Some(held) = triggers.take(*key) {
                        self.triggers.put(*key, held);
                    }
                    self.backlog.push(open.turn, run);
                }
                Phase::Waiting(until) => drop(self.timers.insert((until, run))),
                Phase::UnderWay => {}
            }
        }
        let open = partition.open.len();
        tracing::debug!(partition = number, open, "Took over runs");
        self.open_runs.take_over(partition);
    }

    async fn take_in(&mut self, batch: Result<Batch, TailError>) {
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => {
                tracing::error!(%error, "Cannot follow the log");
                return sleep(TAIL_AGAIN).await;
            }
        };
        let last = batch.last_sequence;
        for item in batch.items {
            match item {
                Item::Event(recorded) => self.fold(recorded),
                Item::Undecodable {
                    sequence, subject, ..
                } => self.fold_unreadable(sequence, &subject),
            }
        }
        for (_, partition) in self.partitions.served_mut() {
            partition.folded_to = partition.folded_to.max(last);
        }
    }

    fn fold(&mut self, recorded: Arc<Recorded>) {
        let number = partition_of(&recorded.stream.id);
        let Some(partition) = self.partitions.get_mut(number) else {
            return;
        };
        if recorded.sequence <= partition.folded_to {
            return;
        }
        let key = RunKey::of(&recorded.stream.id);
        let (run, before) = ((number, key), partition.open.len());
        let (change, sequence) = (partition.fold(key, &recorded), recorded.sequence);
        self.open_runs.note(Turn::of(&recorded), before, partition);
        match change {
            Change::Nothing => self.workers.tell(key, sequence),
            Change::Ready => self.ready(run, recorded),
            Change::Waits(until) => drop(self.timers.insert((until, run))),
            Change::Ended => {
                if matches!(recorded.event, Event::RunCancelled(_)) {
                    measure::cancelled();
                }
                self.triggers.take(key);
                self.workers.call_off(key, sequence);
            }
        }
    }

    fn fold_unreadable(&mut self, sequence: u64, subject: &str) {
        let Some((org, id)) = run_of(subject) else {
            return;
        };
        tracing::error!(sequence, "This version cannot read an event of a run");
        let number = partition_of(id);
        let Some(partition) = self.partitions.get_mut(number) else {
            return;
        };
        if sequence <= partition.folded_to {
            return;
        }
        let (key, turn, before) = (RunKey::of(id), Turn::of_org(&org), partition.open.len());
        let change = partition.fold_unreadable(key, sequence, turn);
        // The run now has more than its trigger.
        self.triggers.take(key);
        self.open_runs.note(turn, before, partition);
        match change {
            Change::Ready => self.backlog.push(turn, (number, key)),
            _ => self.workers.tell(key, sequence),
        }
    }

    fn next_timer(&self) -> Duration {
        let Some((until, _)) = self.timers.first() else {
            return LONGEST_SLEEP;
        };
        let time = *until - self.shared.clock.now();
        time.to_std().unwrap_or_default().min(LONGEST_SLEEP)
    }

    /// Carries on the runs that are due.
    fn wake(&mut self) {
        let now = self.shared.clock.now();
        while let Some((until, run)) = self.timers.first().copied() {
            if until > now {
                return;
            }
            self.timers.pop_first();
            // Others may have moved the run since: then this is no longer its timer.
            match self.open(run).copied() {
                Some(open) if open.phase == Phase::Waiting(until) => {
                    self.set_phase(run, Phase::Ready);
                    self.backlog.push(open.turn, run);
                }
                _ => {}
            }
        }
    }

    /// Saves what has changed since the last time, unless a save is still in progress.
    fn save(&mut self) {
        if !self.saving.is_under_way() {
            let ours = ours(self.partitions.served(), &self.shared.leases);
            self.saving.begin(ours);
        }
    }

    fn report_state(&self) {
        let state = if self.partitions.all_served() {
            SchedulerState::Following
        } else {
            SchedulerState::CatchingUp
        };
        self.state.store(state as u8, Ordering::Relaxed);
    }

    fn measure(&self) {
        let partitions = self.partitions.served().values();
        let open = partitions.map(|partition| partition.open.len()).sum();
        let followed = self.tail.as_ref().map_or(0, Follower::last_sequence);
        measure::load(open, self.workers.len(), self.backlog.len(), followed);
        measure::largest(self.open_runs.largest());
        measure::capacity(self.shared.capacity.load());
    }

    /// Lets running steps finish, then saves the state.
    async fn end(mut self) {
        self.shared.stopping.cancel();
        let max_wait = self.settings.shutdown;
        let all_ended = async {
            while let Some(ended) = self.workers.next_ended().await {
                // The log's tail is no longer read, so the jobs report instead.
                self.job_ended(ended);
            }
        };
        if timeout(max_wait, all_ended).await.is_err() {
            tracing::warn!("Steps in progress were cut off; they start again at the next start");
            self.workers.cut_off().await;
        }
        let ours = ours(self.partitions.served(), &self.shared.leases);
        self.saving.finish(ours).await;
    }
}

/// Partitions that no other process has taken over meanwhile.
fn ours<'a>(
    partitions: &'a BTreeMap<u16, Partition>,
    leases: &'a Leases,
) -> impl Iterator<Item = (u16, &'a Partition)> {
    let ours = partitions
        .iter()
        .filter(|(number, _)| leases.owns(**number));
    ours.map(|(number, partition)| (*number, partition))
}

async fn next_batch(tail: &mut Option<Follower>) -> Result<Batch, TailError> {
    match tail {
        Some(tail) => tail.next(EVENTS_AT_ONCE).await,
        None => std::future::pending().await,
    }
}
