//! Starts the jobs of runs and handles their outcomes.

use std::sync::Arc;

use chrono::TimeDelta;
use schemas::{Event, Recorded};
use tokio::sync::watch;

use super::super::backlog::RunRef;
use super::super::capacity::Working;
use super::super::held::Held;
use super::super::index::{Change, Open, Phase};
use super::super::job::{Beginning, Job, Outcome};
use super::super::measure;
use super::super::turn::{Origin, Turn};
use super::super::worker_pool::{Ended, WorkerHandle};
use super::Scheduler;

/// The pause before a run is retried whose job could not continue.
const AGAIN: TimeDelta = TimeDelta::milliseconds(250);
/// The same for a run that this version cannot read.
const UNREADABLE_AGAIN: TimeDelta = TimeDelta::seconds(10);

impl Scheduler {
    /// Schedules a run to be carried on. A new one starts with the trigger at hand, at once if
    /// there is room; others are read again when it is their turn, so that waiting costs little.
    pub(super) fn ready(&mut self, run: RunRef, recorded: Arc<Recorded>) {
        let turn = Turn::of(&recorded);
        let new = matches!(recorded.event, Event::WorkflowTriggered(_));
        if self.workers.works_on(run.1) {
            // It was retried before the job of its first end was done; the job's end takes it up.
            return self.set_phase(run, Phase::UnderWay);
        }
        if new {
            measure::delay(self.shared.clock.now() - recorded.time);
        }
        let at_once = new && !self.backlog.has(turn);
        if let Some(working) = at_once.then(|| self.working_place(turn)).flatten() {
            let from = Beginning::Trigger(recorded);
            self.start(turn, run, from, Some(working));
        } else {
            if let Some(held) = Held::of(&recorded) {
                self.triggers.put(run.1, held);
            }
            self.backlog.push(turn, run);
        }
    }

    /// A place to begin one more run of an organization.
    fn working_place(&self, turn: Turn) -> Option<Working> {
        let capacity = &self.shared.capacity;
        let may = self.workers.has_room_for(turn) && capacity.has_memory_for(turn);
        may.then(|| capacity.try_work(turn)).flatten()
    }

    pub(super) fn start_what_fits(&mut self) {
        self.start_what_fits_of(Origin::Outside);
        self.start_what_fits_of(Origin::Event);
    }

    fn start_what_fits_of(&mut self, origin: Origin) {
        while self.backlog.len() > 0 && self.shared.capacity.has_work_place(origin) {
            let mut backlog = std::mem::take(&mut self.backlog);
            let mut working = None;
            let next = backlog.pop(origin, |turn| {
                working = self.working_place(turn);
                working.is_some()
            });
            self.backlog = backlog;
            let Some((turn, run)) = next else { return };
            let trigger = self.triggers.take(run.1);
            match self.open(run) {
                Some(open) if open.phase == Phase::Ready => {
                    let (first, is_untouched) = (open.first, open.is_untouched());
                    let from = match trigger.filter(|_| is_untouched) {
                        Some(held) => Beginning::Trigger(held.trigger),
                        None if is_untouched => Beginning::Untouched(first),
                        None => Beginning::Opening(first),
                    };
                    self.start(turn, run, from, working);
                }
                _ => {}
            }
        }
    }

    fn start(&mut self, turn: Turn, run: RunRef, from: Beginning, working: Option<Working>) {
        let (partition, key) = run;
        if self.workers.works_on(key) {
            return;
        }
        // Without a guard the partition is being handed over, or was for a moment.
        let Some(guard) = self.shared.leases.guard(partition) else {
            return self.again(run);
        };
        if let Some(open) = self.open_mut(run) {
            open.begin();
        }
        let ((ended, called_off), (news, told)) = (watch::channel(0), watch::channel(0));
        let job = Job {
            shared: Arc::clone(&self.shared),
            guard,
            partition,
            turn,
            from,
            ended: called_off,
            news: told,
        };
        self.workers
            .start(run, job, working, WorkerHandle { ended, news });
    }

    pub(super) fn job_ended(&mut self, ended: Ended) {
        let Ended { turn, run, outcome } = ended;
        let Some(partition) = self.partitions.get_mut(run.0) else {
            return;
        };
        let before = partition.open.len();
        let change = match outcome {
            Ok(Outcome::Ended { known }) => partition.ended(run.1, known),
            Ok(Outcome::Waits { until, known }) => partition.waits(run.1, until, known),
            Ok(Outcome::Again | Outcome::Left) => return self.again(run),
            Ok(Outcome::Unreadable) => {
                tracing::error!(
                    partition = run.0,
                    "A run waits for a version of the program that can read it"
                );
                return self.again_after(UNREADABLE_AGAIN, run);
            }
            Err(error) => {
                // It would fail again: the run is ended instead.
                tracing::error!(%error, "A run's job failed");
                if let Some(open) = self.open(run) {
                    let from = Beginning::Broken(open.first);
                    self.start(turn, run, from, None);
                }
                return;
            }
        };
        if let Some(partition) = self.partitions.get(run.0) {
            self.open_runs.note(turn, before, partition);
        }
        match change {
            Change::Waits(until) => drop(self.timers.insert((until, run))),
            Change::Ready => self.backlog.push(turn, run),
            Change::Nothing | Change::Ended => {}
        }
    }

    /// Retries the run after a pause.
    fn again(&mut self, run: RunRef) {
        self.again_after(AGAIN, run);
    }

    fn again_after(&mut self, pause: TimeDelta, run: RunRef) {
        let until = self.shared.clock.now() + pause;
        self.set_phase(run, Phase::Waiting(until));
        self.timers.insert((until, run));
    }

    pub(super) fn open(&self, (partition, key): RunRef) -> Option<&Open> {
        self.partitions.get(partition)?.open.get(&key)
    }

    fn open_mut(&mut self, (partition, key): RunRef) -> Option<&mut Open> {
        self.partitions.get_mut(partition)?.open.get_mut(&key)
    }

    pub(super) fn set_phase(&mut self, run: RunRef, phase: Phase) {
        if let Some(open) = self.open_mut(run) {
            open.phase = phase;
        }
    }
}
