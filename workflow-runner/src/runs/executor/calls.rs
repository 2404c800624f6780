//! The work between a step's start and its outcome.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::run::{Attempt, Run, retry_at};
use domain::shortened;
use event_log::ReadError;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use schemas::StepId;
use schemas::run::Way;
use schemas::workflow::{Action, Retry};
use serde_json::Value;
use tokio::time::{Instant, sleep};
use traces::{Span, SpanKind, Traced as _};
use uuid::Uuid;

use super::super::job::{Outcome, Stop};
use super::super::measure;
use super::super::steps::{self, Begun, Call, encoded_len, http, record};
use super::super::triggers::ExpiredWait;
use super::{AGAIN, CallKey, Executor, LONGEST_ERROR};
use crate::task::Task;

/// Memory of any run besides its data.
const RUN_BYTES: usize = 16 * 1024;

/// The load of a call in progress.
#[derive(Clone, Copy, Debug)]
pub(super) enum Load {
    /// This many bytes, while its answer is awaited.
    Http(usize),
    /// A working place.
    Work,
}

/// A call's end.
pub(super) enum Called {
    Http {
        key: CallKey,
        retry: Retry,
        outcome: http::Outcome,
        took: Duration,
    },
    /// The run was no longer certainly ours when there was a place for the call.
    NotBegun { key: CallKey },
    /// `None` if the current record could not be read: the step is called again.
    Record {
        key: CallKey,
        written: Option<Box<record::Written>>,
    },
    /// The time of a wait for an event has passed; with what came in time.
    Waited {
        key: CallKey,
        came: Result<Option<Value>, ReadError>,
    },
}

impl Called {
    fn key(&self) -> &CallKey {
        match self {
            Self::Http { key, .. }
            | Self::NotBegun { key }
            | Self::Record { key, .. }
            | Self::Waited { key, .. } => key,
        }
    }
}

impl<'j> Executor<'j> {
    /// Makes sure that an open attempt's call is in progress; one from before this job is prepared
    /// again.
    pub(super) async fn call(&mut self, attempt: &Attempt<'_>) -> Result<(), Stop> {
        let key = (attempt.step.id.clone(), attempt.number);
        if self.calling.contains_key(&key) {
            return Ok(());
        }
        let (call, span) = match self.prepared.remove(&key) {
            Some(prepared) => prepared,
            None => match self.prepare(attempt).await {
                Ok(Begun::Call { call, .. }) => (call, self.draft.span_of(attempt)),
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
        if !self.job.may_call() {
            // Calls in progress are awaited; other open attempts are left to the next owner.
            return if self.calls.is_empty() {
                Err(Stop(Outcome::Left))
            } else {
                Ok(())
            };
        }
        let load = match &call {
            Call::Http(call) => Load::Http(call.bytes()),
            Call::Record(_) => Load::Work,
        };
        self.calling.insert(key.clone(), load);
        self.calls.push(self.perform(key, call, span));
        Ok(())
    }

    fn perform(&self, key: CallKey, call: Call, span: Span) -> BoxFuture<'j, Called> {
        let (job, scrub) = (self.job, Arc::clone(&self.scrub));
        let shared = &job.shared;
        let mut origin = http::Origin {
            trace: self.draft.child_trace(),
            cause: self.draft.cause_header(shared.log.keyring()),
        };
        let stream = self.draft.stream.clone();
        Box::pin(async move {
            match call {
                Call::Http(call) => {
                    let place = shared.capacity.call(job.turn, &shared.stopping).await;
                    // Waiting for a place may have taken a while.
                    let Some(_place) = place.filter(|_| job.may_call()) else {
                        return Called::NotBegun { key };
                    };
                    let sent = span.part("HTTP call", SpanKind::Client);
                    origin.trace = sent.traceparent().unwrap_or(origin.trace);
                    let (shared, retry) = (Arc::clone(shared), call.retry.clone());
                    // Its timeout runs while the run is busy, so its answer must be read then too.
                    let sending = Task::spawn(async move {
                        let (began, now) = (Instant::now(), || shared.clock.now());
                        let (org, targets) = (&stream.org, &shared.targets);
                        let outcome = http::perform(&call, org, targets, &origin, &scrub, now);
                        let outcome = outcome.within(&sent).await;
                        if matches!(outcome, http::Outcome::Failed { .. }) {
                            sent.failed();
                        }
                        (outcome, began.elapsed())
                    });
                    let (outcome, took) = sending.await;
                    if matches!(outcome, http::Outcome::Failed { .. }) {
                        span.failed();
                    }
                    Called::Http {
                        key,
                        retry,
                        outcome,
                        took,
                    }
                }
                Call::Record(call) => {
                    let written = record::decide(&call, &shared.log, &stream, shared.clock.now());
                    let written = written.within(&span).await;
                    if let Err(error) = &written {
                        tracing::debug!(%error, "A RECORD step is waiting for the log");
                        sleep(AGAIN).await;
                    }
                    let written = written.ok().map(Box::new);
                    Called::Record { key, written }
                }
            }
        })
    }

    /// Makes sure that events that came in time are searched for before a wait ends by timeout.
    pub(super) fn search_missed_events(&mut self, attempt: &Attempt<'_>) {
        let (id, number) = (&attempt.step.id, attempt.number);
        let key = (id.clone(), number);
        let until = self.draft.end_of_wait(&self.program, id);
        let (Action::WaitForEvent(wait), Some(until), false) =
            (&attempt.step.action, until, self.calling.contains_key(&key))
        else {
            return;
        };
        self.calling.insert(key.clone(), Load::Work);
        let expired = ExpiredWait {
            run: self.draft.stream.clone(),
            step: id.clone(),
            attempt: number,
            event: wait.event.clone(),
            until,
            scope: steps::scope_of(&self.draft.run, &self.program),
        };
        let (shared, program) = (&self.job.shared, Arc::clone(&self.program));
        self.calls.push(Box::pin(async move {
            let came = shared.missed_events.find(expired, &program).await;
            if let Err(error) = &came {
                tracing::debug!(%error, "The end of a wait is waiting for the log");
                sleep(AGAIN).await;
            }
            Called::Waited { key, came }
        }));
    }

    /// Takes a working place again, if it was given back.
    pub(super) async fn work(&mut self) {
        if self.working.is_none() {
            self.working = Some(self.job.shared.capacity.work(self.job.turn).await);
            self.weight = None;
        }
    }

    /// Gives the working place back while only answers are awaited.
    pub(super) fn rest(&mut self) {
        let mut bytes = 0;
        for load in self.calling.values() {
            match load {
                Load::Http(call) => bytes += call,
                Load::Work => return,
            }
        }
        bytes += weight(&self.draft.run);
        self.weight = Some(self.job.shared.capacity.hold(self.job.turn, bytes));
        self.working = None;
    }

    /// Takes in a finished call, and others that have finished meanwhile.
    pub(super) fn settle_all(&mut self, mut called: Option<Called>) {
        while let Some(one) = called {
            self.settle(one);
            called = self.calls.next().now_or_never().flatten();
        }
    }

    fn settle(&mut self, called: Called) {
        let key = called.key().clone();
        self.calling.remove(&key);
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
            // One commit holds one event of a record: a second one is decided again.
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
                self.draft.step_answered(&id, number, outcome, now);
            }
            Called::NotBegun { .. } | Called::Record { .. } | Called::Waited { .. } => {}
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
                self.draft.step_answered(id, number, outcome, now);
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
                let error = shortened(&error, LONGEST_ERROR);
                self.draft
                    .step_failed(id, number, error, next.flatten(), now);
            }
        }
    }
}

/// Approximate memory that a run holds.
fn weight(run: &Run) -> usize {
    let outputs = run.steps.values().map(|step| encoded_len(&step.output));
    let payload: usize = run
        .trigger_payload
        .iter()
        .map(|(name, value)| name.len() + encoded_len(value))
        .sum();
    RUN_BYTES + payload + outputs.sum::<usize>()
}

/// A random number from 0 to 1.
fn chance() -> f64 {
    let [a, b, c, d, ..] = Uuid::new_v4().into_bytes();
    f64::from(u32::from_be_bytes([a, b, c, d])) / f64::from(u32::MAX)
}
