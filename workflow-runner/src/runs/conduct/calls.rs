//! What is done between a step's beginning and its outcome.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::run::{Attempt, retry_at};
use event_log::ReadError;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use schemas::StepId;
use schemas::run::Way;
use schemas::workflow::{Action, Retry};
use serde_json::Value;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::super::job::{Outcome, Stop};
use super::super::measure;
use super::super::program::Templates;
use super::super::steps::{self, Begun, Call, http, record};
use super::super::triggers::Late;
use super::{AGAIN, CallKey, Conduct, shortened};

/// A call's end.
pub(super) enum Called {
    Http {
        key: CallKey,
        retry: Retry,
        outcome: http::Outcome,
        took: Duration,
    },
    /// `None` where what stands could not be read: the step is called again.
    Record {
        key: CallKey,
        written: Option<Box<record::Written>>,
    },
    /// The time of a wait for an event is over; with what came in time.
    Waited {
        key: CallKey,
        came: Result<Option<Value>, ReadError>,
    },
}

impl Called {
    fn key(&self) -> &CallKey {
        match self {
            Self::Http { key, .. } | Self::Record { key, .. } | Self::Waited { key, .. } => key,
        }
    }
}

impl<'j> Conduct<'j> {
    /// Makes sure that an open attempt's call is under way; one from before this job is prepared
    /// again.
    pub(super) fn call(&mut self, attempt: &Attempt<'_>) -> Result<(), Stop> {
        let key = (attempt.step.id.clone(), attempt.number);
        if self.calling.contains(&key) {
            return Ok(());
        }
        let call = match self.prepared.remove(&key) {
            Some(call) => call,
            None => match self.prepare(attempt) {
                Ok(Begun::Call { call, .. }) => call,
                // Its end follows from the time alone.
                Ok(Begun::Waits { .. }) => return Ok(()),
                Ok(Begun::Done(done)) => {
                    self.done(&key.0, key.1, *done, self.now());
                    return Ok(());
                }
                Err(error) => {
                    let now = self.now();
                    self.draft.step_failed(&key.0, key.1, error, None, now);
                    return Ok(());
                }
            },
        };
        if !self.may_call() {
            // Calls under way are waited for; what else is open is the next owner's.
            return if self.calls.is_empty() {
                Err(Stop(Outcome::Left))
            } else {
                Ok(())
            };
        }
        self.calling.push(key.clone());
        self.calls.push(self.perform(key, call));
        Ok(())
    }

    fn perform(&self, key: CallKey, call: Call) -> BoxFuture<'j, Called> {
        let (shared, scrub) = (&self.job.shared, Arc::clone(&self.scrub));
        let trace = self.draft.child_trace();
        let stream = self.draft.stream.clone();
        Box::pin(async move {
            let began = Instant::now();
            let now = || shared.clock.now();
            match call {
                Call::Http(call) => Called::Http {
                    key,
                    outcome: http::perform(&call, &shared.targets, &trace, &scrub, now).await,
                    retry: call.retry.clone(),
                    took: began.elapsed(),
                },
                Call::Record(call) => {
                    let written = record::decide(&call, &shared.log, &stream, now()).await;
                    if let Err(error) = &written {
                        tracing::debug!(%error, "A step waits for its record");
                        sleep(AGAIN).await;
                    }
                    let written = written.ok().map(Box::new);
                    Called::Record { key, written }
                }
            }
        })
    }

    /// Makes sure that what came in time is looked for before a wait ends by its timeout.
    pub(super) fn look_back(&mut self, attempt: &Attempt<'_>) {
        let (id, number) = (&attempt.step.id, attempt.number);
        let key = (id.clone(), number);
        let until = self.draft.end_of_wait(&self.program, id);
        let (Action::WaitForEvent(wait), Some(until), false) =
            (&attempt.step.action, until, self.calling.contains(&key))
        else {
            return;
        };
        self.calling.push(key.clone());
        let late = Late {
            run: self.draft.stream.clone(),
            step: id.clone(),
            attempt: number,
            event: wait.event.clone(),
            until,
            scope: steps::scope_of(&self.draft.run),
        };
        let (shared, program) = (&self.job.shared, Arc::clone(&self.program));
        self.calls.push(Box::pin(async move {
            let test = match program.templates(&late.step) {
                Ok(Templates::Wait(test)) => test.as_ref(),
                _ => None,
            };
            let came = shared.look_back.find(&late, test).await;
            if let Err(error) = &came {
                tracing::debug!(%error, "A wait's end waits for the log");
                sleep(AGAIN).await;
            }
            Called::Waited { key, came }
        }));
    }

    /// A call may only begin while the run is surely ours.
    fn may_call(&self) -> bool {
        let shared = &self.job.shared;
        !shared.stopping.is_cancelled()
            && self.job.hold.is_valid()
            && shared.leases.holds(self.job.partition)
    }

    /// Takes in a call's end, and those of others that have come meanwhile.
    pub(super) fn settle_all(&mut self, mut called: Option<Called>) {
        while let Some(one) = called {
            self.settle(one);
            called = self.calls.next().now_or_never().flatten();
        }
    }

    fn settle(&mut self, called: Called) {
        let key = called.key().clone();
        self.calling.retain(|calling| *calling != key);
        let (id, number) = key;
        let open = self.draft.is_open(&id, number);
        let now = self.now();
        match called {
            Called::Http {
                retry,
                outcome,
                took,
                ..
            } => {
                measure::step("HTTP", took, matches!(outcome, http::Outcome::Succeeded(_)));
                if open {
                    self.settle_http(&id, number, &retry, outcome, now);
                }
            }
            // One commit holds one event of a record: what comes second is decided again.
            Called::Record {
                written: Some(written),
                ..
            } if open && !self.draft.touches(&written.stream) => {
                if let Some(event) = written.event {
                    let (stream, expected) = (written.stream, written.expected);
                    self.draft.push_beside(stream, expected, event, now);
                }
                let outcome = (Way::Next, written.output);
                self.draft.step_succeeded(&id, number, outcome, now);
            }
            Called::Waited { came: Ok(came), .. } if open => {
                let outcome = match came {
                    Some(came) => (Way::Next, came),
                    None => (Way::OnTimeout, Value::Null),
                };
                self.draft.step_succeeded(&id, number, outcome, now);
            }
            Called::Record { .. } | Called::Waited { .. } => {}
        }
    }

    fn settle_http(
        &mut self,
        id: &StepId,
        number: u32,
        retry: &Retry,
        outcome: http::Outcome,
        now: DateTime<Utc>,
    ) {
        match outcome {
            http::Outcome::Succeeded(output) => {
                let outcome = (Way::Next, output);
                self.draft.step_succeeded(id, number, outcome, now);
            }
            http::Outcome::Failed {
                error,
                again,
                not_before,
            } => {
                let before = self.draft.run.steps.get(id);
                let before = before.map_or(0, |step| step.attempts_before);
                let nth = number.saturating_sub(before);
                let next = again.then(|| retry_at(retry, nth, now, chance(), not_before));
                let error = shortened(&error);
                self.draft
                    .step_failed(id, number, error, next.flatten(), now);
            }
        }
    }
}

/// A number from 0 to 1.
fn chance() -> f64 {
    let [a, b, c, d, ..] = Uuid::new_v4().into_bytes();
    f64::from(u32::from_be_bytes([a, b, c, d])) / f64::from(u32::MAX)
}
