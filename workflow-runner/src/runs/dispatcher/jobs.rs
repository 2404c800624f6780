//! Giving runs to jobs, and what becomes of them.

use std::sync::Arc;

use chrono::TimeDelta;
use schemas::{Event, Recorded};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::super::backlog::{Origin, Place, Turn};
use super::super::crew::{Ended, Reins};
use super::super::index::{Change, Open, Phase};
use super::super::job::{From, Job, Outcome};
use super::super::measure;
use super::super::room::Working;
use super::Dispatcher;

/// The pause before a run is tried again whose job could not get on.
const AGAIN: TimeDelta = TimeDelta::milliseconds(250);

impl Dispatcher {
    /// A run is to be carried on. One that is new is started with what is at hand, if there is
    /// room; all others are read again when it is their turn, so that what waits costs nothing.
    pub(super) fn ready(&mut self, place: Place, recorded: Recorded) {
        let turn = Turn::of(&recorded);
        let new = matches!(recorded.event, Event::WorkflowTriggered(_));
        if self.crew.works_on(place.1) {
            // It was retried before the job of its first end was done; the job's end takes it up.
            return self.set_phase(place, Phase::UnderWay);
        }
        if new {
            measure::delay(self.shared.clock.now() - recorded.time);
        }
        let at_once = new && !self.backlog.has(turn);
        match at_once.then(|| self.working_place(turn)).flatten() {
            Some(working) => {
                let from = From::Trigger(Box::new(recorded));
                self.start(turn, place, from, Some(working));
            }
            None => self.backlog.push(turn, place),
        }
    }

    /// A place to begin one more run of an organization.
    fn working_place(&self, turn: Turn) -> Option<Working> {
        let room = &self.shared.room;
        let may = self.crew.has_room_for(turn) && room.has_memory_for(turn);
        may.then(|| room.try_work(turn)).flatten()
    }

    pub(super) fn start_what_fits(&mut self) {
        self.start_what_fits_of(Origin::Outside);
        self.start_what_fits_of(Origin::Event);
    }

    fn start_what_fits_of(&mut self, origin: Origin) {
        while self.backlog.len() > 0 && self.shared.room.has_work_place(origin) {
            let mut backlog = std::mem::take(&mut self.backlog);
            let mut working = None;
            let next = backlog.pop(origin, |turn| {
                working = self.working_place(turn);
                working.is_some()
            });
            self.backlog = backlog;
            let Some((turn, place)) = next else { return };
            match self.open(place) {
                Some(open) if open.phase == Phase::Ready => {
                    let from = From::Place(open.first);
                    self.start(turn, place, from, working);
                }
                _ => {}
            }
        }
    }

    fn start(&mut self, turn: Turn, place: Place, from: From, working: Option<Working>) {
        let (partition, key) = place;
        if self.crew.works_on(key) {
            return;
        }
        // Without a hold the partition is on its way to somebody else, or was for a moment.
        let Some(hold) = self.shared.leases.hold(partition) else {
            return self.again(place);
        };
        self.set_phase(place, Phase::UnderWay);
        let ended = CancellationToken::new();
        let (news, told) = watch::channel(0);
        let job = Job {
            shared: Arc::clone(&self.shared),
            hold,
            partition,
            turn,
            from,
            ended: ended.clone(),
            news: told,
        };
        self.crew.start(place, job, working, Reins { ended, news });
    }

    pub(super) fn job_ended(&mut self, ended: Ended) {
        let Ended {
            turn,
            place,
            outcome,
        } = ended;
        let Some(partition) = self.partitions.get_mut(&place.0) else {
            return;
        };
        let change = match outcome {
            Ok(Outcome::Ended { known }) => partition.ended(place.1, known),
            Ok(Outcome::Waits { until, known }) => partition.waits(place.1, until, known),
            Ok(Outcome::Again | Outcome::Left) => return self.again(place),
            Err(error) => {
                // It would break down again: the run is ended instead.
                tracing::error!(%error, "A run's job failed");
                if let Some(open) = self.open(place) {
                    let from = From::Broken(open.first);
                    self.start(turn, place, from, None);
                }
                return;
            }
        };
        match change {
            Change::Waits(until) => drop(self.timers.insert((until, place))),
            Change::Ready => self.backlog.push(turn, place),
            Change::Nothing | Change::Ended => {}
        }
    }

    /// The run is tried again in a moment.
    fn again(&mut self, place: Place) {
        let until = self.shared.clock.now() + AGAIN;
        self.set_phase(place, Phase::Waiting(until));
        self.timers.insert((until, place));
    }

    pub(super) fn open(&self, (partition, key): Place) -> Option<&Open> {
        self.partitions.get(&partition)?.open.get(&key)
    }

    pub(super) fn set_phase(&mut self, (partition, key): Place, phase: Phase) {
        let partition = self.partitions.get_mut(&partition);
        if let Some(open) = partition.and_then(|partition| partition.open.get_mut(&key)) {
            open.phase = phase;
        }
    }
}
