//! One run, read and carried on as far as it goes: until it has ended or waits for a time.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use domain::run::{End, NotARun, State};
use event_log::{EventLog, ReadError};
use schemas::{Event, Log, Recorded};
use service::Clock;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::capacity::{Capacity, Working};
use super::draft::Draft;
use super::executor::Executor;
use super::program::Program;
use super::programs::ProgramError;
use super::renderer::Renderer;
use super::secrets::Secrets;
use super::triggers::MissedEventSearch;
use super::turn::Turn;
use crate::leases::{LeaseGuard, Leases};
use crate::targets::Targets;

/// State shared by all jobs.
pub(super) struct Shared {
    pub(super) log: EventLog,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) leases: Leases,
    pub(super) renderer: Renderer,
    pub(super) secrets: Secrets,
    pub(super) targets: Targets,
    pub(super) missed_events: MissedEventSearch,
    pub(super) capacity: Capacity,
    /// Cancelled when no call may start any more.
    pub(super) stopping: CancellationToken,
}

/// A run to carry on.
pub(super) struct Job {
    pub(super) shared: Arc<Shared>,
    pub(super) guard: LeaseGuard,
    pub(super) partition: u16,
    /// Its organization and origin.
    pub(super) turn: Turn,
    pub(super) from: Beginning,
    /// The last event known to have ended the run. It may have been retried since, and the job may
    /// have seen that.
    pub(super) ended: watch::Receiver<u64>,
    /// The last known event of the run, whoever wrote it.
    pub(super) news: watch::Receiver<u64>,
}

/// Where a run begins.
pub(super) enum Beginning {
    /// Its trigger, which is all that is known of it so far.
    Trigger(Arc<Recorded>),
    /// The sequence of the event that opened it: its trigger or its retry.
    Opening(u64),
    /// The same, for a run of which nothing else is known.
    Untouched(u64),
    /// As before; the run is to be ended because its last job failed.
    Broken(u64),
}

/// The outcome of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The run has ended; `known` is the last of its events that the job has seen.
    Ended { known: u64 },
    /// The run continues at `until`; `known` is its last event's sequence.
    Waits { until: DateTime<Utc>, known: u64 },
    /// The log could not be read, or others keep writing to the run: retry soon.
    Again,
    /// This version cannot read the run's data: it waits for one that can.
    Unreadable,
    /// The run is not ours to carry on.
    Left,
}

/// Why a job ends before its run does.
pub(super) struct Stop(pub(super) Outcome);

/// Nothing more follows for something that is not a run.
const NEVER: Outcome = Outcome::Ended { known: u64::MAX };

impl Job {
    /// Works in a place of the run's organization; waits for one if none is given.
    pub(super) async fn run(self, working: Option<Working>) -> Outcome {
        let working = match working {
            Some(working) => working,
            None => self.shared.capacity.work(self.turn).await,
        };
        let carried_on = match self.load().await {
            Ok(draft) => self.carry_on(draft, working).await,
            Err(stop) => Err(stop),
        };
        match carried_on {
            Ok(outcome) | Err(Stop(outcome)) => outcome,
        }
    }

    async fn load(&self) -> Result<Draft, Stop> {
        match &self.from {
            Beginning::Trigger(trigger) => draft(std::slice::from_ref(&**trigger)),
            Beginning::Opening(first) => self.load_from(&self.opening_at(*first).await?).await,
            Beginning::Untouched(first) => {
                let opening = self.opening_at(*first).await?;
                match &opening.event {
                    Event::WorkflowTriggered(_) => draft(&[opening]),
                    _ => self.load_from(&opening).await,
                }
            }
            Beginning::Broken(first) => self.give_up(&self.opening_at(*first).await?).await,
        }
    }

    async fn opening_at(&self, first: u64) -> Result<Recorded, Stop> {
        let opening = self.shared.log.get(Log::Events, first).await;
        opening.map_err(unread)?.ok_or(Stop(NEVER))
    }

    async fn load_from(&self, opening: &Recorded) -> Result<Draft, Stop> {
        let events = self.shared.log.load(&opening.stream).await;
        draft(&events.map_err(unread)?)
    }

    /// Ends a run whose job failed.
    async fn give_up(&self, opening: &Recorded) -> Result<Draft, Stop> {
        let last = self.shared.log.last(&opening.stream).await;
        let last = last.map_err(unread)?.ok_or(Stop(Outcome::Again))?;
        given_up(opening, &last, self.shared.clock.now())
    }

    /// A call may only start while the run is certainly ours.
    pub(super) fn may_call(&self) -> bool {
        let shared = &self.shared;
        !shared.stopping.is_cancelled()
            && self.guard.is_valid()
            && shared.leases.owns(self.partition)
    }

    async fn carry_on(&self, mut draft: Draft, working: Working) -> Result<Outcome, Stop> {
        if draft.run.state.is_end() && draft.is_empty() {
            return Ok(Outcome::Ended {
                known: draft.sequence,
            });
        }
        let program = self.program(&mut draft).await?;
        let mut executor = Executor::new(self, draft, program, working);
        loop {
            if let Some(outcome) = executor.round().await? {
                return Ok(outcome);
            }
        }
    }

    /// The definition that the run follows; a run without one is ended.
    async fn program(&self, draft: &mut Draft) -> Result<Arc<Program>, Stop> {
        let (run, org) = (&draft.run, &draft.stream.org);
        let programs = self.shared.renderer.programs();
        match programs
            .get(org, &run.workflow_id, run.workflow_version)
            .await
        {
            Ok(program) => Ok(program),
            Err(ProgramError::Unavailable(_)) => Err(Stop(Outcome::Again)),
            Err(ProgramError::Undecodable(_)) => Err(Stop(Outcome::Unreadable)),
            Err(error) => {
                if !draft.run.state.is_end() {
                    draft.ended(End::Failed(error.to_string()), self.shared.clock.now());
                }
                Ok(Arc::new(Program::empty()))
            }
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "given to map_err as it is")]
pub(super) fn unread(error: ReadError) -> Stop {
    Stop(match error {
        ReadError::Unavailable(_) => Outcome::Again,
        ReadError::Undecodable { .. } => Outcome::Unreadable,
    })
}

pub(super) fn draft(events: &[Recorded]) -> Result<Draft, Stop> {
    Draft::from_events(events).map_err(|error| match events.first() {
        Some(first) => no_run(first, error),
        None => Stop(NEVER),
    })
}

/// The end of a run whose job failed, by the event that opened it and its last. The job may have
/// failed after it had ended the run.
fn given_up(opening: &Recorded, last: &Recorded, now: DateTime<Utc>) -> Result<Draft, Stop> {
    if State::Running.after(&last.event).is_end() {
        let known = last.sequence;
        return Err(Stop(Outcome::Ended { known }));
    }
    tracing::error!(run = opening.stream.id, "Giving up on a run");
    let mut draft = Draft::opened_by(opening).map_err(|error| no_run(opening, error))?;
    draft.sequence = last.sequence;
    let reason = "the run met an internal error".to_owned();
    draft.ended(End::Failed(reason), now);
    Ok(draft)
}

fn no_run(first: &Recorded, error: NotARun) -> Stop {
    if error != NotARun::Forgotten {
        let run = first.stream.id.as_str();
        tracing::error!(run, %error, "Not a run");
    }
    Stop(NEVER)
}

#[cfg(test)]
mod tests {
    use event_log::Expected;
    use schemas::workflow::Triggered;
    use schemas::{AggregateType, Context, EventId, OrgId, StreamId, run};
    use uuid::Uuid;

    use super::*;

    fn recorded(sequence: u64, event: Event) -> Recorded {
        Recorded {
            sequence,
            stream: StreamId::new(&OrgId::from("o"), AggregateType::Run, "r"),
            id: EventId(Uuid::from_u128(sequence.into())),
            time: DateTime::UNIX_EPOCH,
            event,
            context: Context::default(),
            receipt: None,
        }
    }

    fn triggered() -> Recorded {
        let triggered = Event::WorkflowTriggered(Triggered {
            run_id: "r".into(),
            workflow_id: "w".into(),
            workflow_version: 1,
            trigger_payload: serde_json::Map::new(),
        });
        recorded(3, triggered)
    }

    fn given_up_after(last: Event) -> Result<Draft, Outcome> {
        let given_up = given_up(&triggered(), &recorded(9, last), DateTime::UNIX_EPOCH);
        given_up.map_err(|Stop(outcome)| outcome)
    }

    #[test]
    fn a_run_whose_job_failed_after_its_end_does_not_end_twice() {
        let succeeded = Event::RunSucceeded(run::Succeeded {
            run_id: "r".into(),
            workflow_id: "w".into(),
        });
        let outcome = given_up_after(succeeded).err();
        assert_eq!(outcome, Some(Outcome::Ended { known: 9 }));
    }

    #[test]
    fn a_run_that_is_forgotten_while_its_job_works_is_over() {
        let forgotten = Event::RunForgotten(run::Forgotten { run_id: "r".into() });
        let outcome = given_up_after(forgotten.clone()).err();
        assert_eq!(outcome, Some(Outcome::Ended { known: 9 }));
        let left = [recorded(9, forgotten)];
        let outcome = draft(&left).map_err(|Stop(outcome)| outcome).err();
        assert_eq!(outcome, Some(NEVER));
    }

    #[test]
    fn a_run_whose_job_failed_is_ended_after_its_last_event() {
        let started = Event::RunStarted(run::Started {
            run_id: "r".into(),
            workflow_id: "w".into(),
        });
        let draft = given_up_after(started).ok().unwrap();
        let commit = draft.commit();
        let [write] = &commit.writes[..] else {
            panic!("one aggregate");
        };
        assert!(matches!(write.expected, Expected::At(9)));
        assert!(matches!(write.events[0].event, Event::RunFailed(_)));
    }
}
