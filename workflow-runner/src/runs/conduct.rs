//! Carrying a run on: decide, append, act, and again.
//!
//! What is decided ([`domain::run::next`]) is appended in one commit, and only then acted on. The
//! commit expects the run's own last sequence, so of two who carry on one run, in whatever
//! processes, only one gets any further; the other reads the run again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::run::{Attempt, End, Next, Run, State, StepState, next, retry_at};
use domain::template::Scrub;
use event_log::AppendError;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use schemas::StepId;
use schemas::workflow::Retry;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::draft::Draft;
use super::job::{self, Job, Outcome, Stop};
use super::measure;
use super::program::Program;
use super::secrets::Values;
use super::steps::{self, Begun, Done, Surroundings, http};

/// Events after which a decision is appended before it goes on.
const EVENTS_AT_ONCE: usize = 100;
/// How often a run is read again because others wrote to it, before its job lets it go.
const RELOADS: u32 = 5;
const AGAIN: Duration = Duration::from_millis(50);
const AGAIN_MAX: Duration = Duration::from_secs(1);
/// How much of an error is recorded.
const ERROR: usize = 1_000;

type CallKey = (StepId, u32);

/// A call's end.
struct Called {
    key: CallKey,
    retry: Retry,
    outcome: http::Outcome,
    took: Duration,
}

/// A run under way.
pub(super) struct Conduct<'j> {
    job: &'j Job,
    draft: Draft,
    program: Arc<Program>,
    values: Values,
    scrub: Arc<Scrub>,
    /// Calls whose beginning is decided and not yet appended.
    prepared: HashMap<CallKey, Box<http::Call>>,
    calls: FuturesUnordered<BoxFuture<'j, Called>>,
    calling: Vec<CallKey>,
    reloads: u32,
}

impl<'j> Conduct<'j> {
    pub(super) fn new(job: &'j Job, draft: Draft, program: Arc<Program>) -> Self {
        Self {
            job,
            draft,
            program,
            values: Values::default(),
            scrub: Arc::new(Scrub::default()),
            prepared: HashMap::new(),
            calls: FuturesUnordered::new(),
            calling: Vec::new(),
            reloads: 0,
        }
    }

    /// Decides, appends, acts, and waits for what comes of it; an outcome ends the job.
    pub(super) async fn round(&mut self) -> Result<Option<Outcome>, Stop> {
        self.read_secrets().await?;
        self.decide();
        if !self.draft.is_empty() && !self.append().await? {
            return Ok(None);
        }
        let program = Arc::clone(&self.program);
        let work = match next(&self.draft.run, &program.graph, self.now()) {
            Next::Ended => return Ok(Some(Outcome::Ended)),
            Next::Work(work) if work.begin.is_empty() => work,
            Next::Work(_) | Next::Start | Next::End(_) => return Ok(None),
        };
        for attempt in &work.open {
            self.call(attempt)?;
        }
        if !self.draft.is_empty() {
            return Ok(None);
        }
        let until = work.wake_at();
        if self.calls.is_empty() {
            let known = self.draft.sequence;
            return Ok(Some(Outcome::Waits { until, known }));
        }
        tokio::select! {
            () = self.job.ended.cancelled() => return Ok(Some(Outcome::Ended)),
            () = sleep(self.time_until(until)) => {}
            called = self.calls.next() => self.settle_all(called),
        }
        Ok(None)
    }

    fn now(&self) -> DateTime<Utc> {
        self.job.shared.clock.now()
    }

    fn time_until(&self, time: DateTime<Utc>) -> Duration {
        (time - self.now()).to_std().unwrap_or_default()
    }

    async fn read_secrets(&mut self) -> Result<(), Stop> {
        let names = self.program.secrets();
        if names.is_empty() {
            return Ok(());
        }
        let org = &self.draft.stream.org;
        let read = self.job.shared.secrets.get(org, names).await;
        self.values = read.map_err(|error| {
            tracing::debug!(%error, "A run waits for its secrets");
            Stop(Outcome::Again)
        })?;
        self.scrub = Arc::new(Scrub::new(self.values.iter()));
        Ok(())
    }

    /// Decides as far as that is possible without an answer from outside.
    fn decide(&mut self) {
        let program = Arc::clone(&self.program);
        while self.draft.len() < EVENTS_AT_ONCE {
            let now = self.now();
            match next(&self.draft.run, &program.graph, now) {
                Next::Ended => return,
                Next::Start => self.draft.started(now),
                Next::End(end) => self.draft.ended(end, now),
                Next::Work(work) if work.begin.is_empty() => {
                    let waits = work.open.is_empty() && self.draft.run.state != State::Waiting;
                    if let (Some(waiting), true) = (&work.waiting, waits) {
                        let until = waiting.until.min(work.deadline);
                        self.draft.waits(&waiting.step, until, now);
                    }
                    return;
                }
                Next::Work(work) => {
                    for attempt in &work.begin {
                        self.begin(attempt, now);
                    }
                }
            }
        }
    }

    fn begin(&mut self, attempt: &Attempt<'_>, now: DateTime<Utc>) {
        let (id, number) = (&attempt.step.id, attempt.number);
        match self.prepare(attempt) {
            Ok(Begun::Done(mut done)) => {
                self.draft.step_started(id, number, done.input.take(), now);
                self.done(id, number, *done, now);
            }
            Ok(Begun::Call { input, call }) => {
                self.draft.step_started(id, number, input, now);
                self.prepared.insert((id.clone(), number), call);
            }
            Err(error) => {
                self.draft.step_started(id, number, Value::Null, now);
                self.draft.step_failed(id, number, error, None, now);
            }
        }
    }

    fn done(&mut self, id: &StepId, number: u32, done: Done, now: DateTime<Utc>) {
        if let Some(event) = done.says {
            self.draft.push(event, now);
        }
        self.draft.step_succeeded(id, number, done.output, now);
    }

    fn prepare(&self, attempt: &Attempt<'_>) -> Result<Begun, String> {
        let step = attempt.step;
        let templates = self.program.templates(&step.id);
        let with = Surroundings {
            run: &self.draft.run,
            secrets: &self.values,
        };
        let begun = templates
            .map_err(ToString::to_string)
            .and_then(|templates| steps::begin(step, templates, &with));
        begun.map_err(|error| shortened(&self.scrub.text(&error)))
    }

    /// Makes sure that an open attempt's call is under way; one from before this job is prepared
    /// again.
    fn call(&mut self, attempt: &Attempt<'_>) -> Result<(), Stop> {
        let key = (attempt.step.id.clone(), attempt.number);
        if self.calling.contains(&key) {
            return Ok(());
        }
        let call = match self.prepared.remove(&key) {
            Some(call) => call,
            None => match self.prepare(attempt) {
                Ok(Begun::Call { call, .. }) => call,
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
        let (shared, scrub) = (&self.job.shared, Arc::clone(&self.scrub));
        let trace = self.draft.child_trace();
        self.calls.push(Box::pin(async move {
            let began = Instant::now();
            let now = || shared.clock.now();
            let outcome = http::perform(&call, &shared.targets, &trace, &scrub, now).await;
            Called {
                key,
                retry: call.retry.clone(),
                outcome,
                took: began.elapsed(),
            }
        }));
        Ok(())
    }

    /// A call may only begin while the run is surely ours.
    fn may_call(&self) -> bool {
        let shared = &self.job.shared;
        !shared.stopping.is_cancelled()
            && self.job.hold.is_valid()
            && shared.leases.holds(self.job.partition)
    }

    /// Takes in a call's end, and those of others that have come meanwhile.
    fn settle_all(&mut self, mut called: Option<Called>) {
        while let Some(one) = called {
            self.settle(one);
            called = self.calls.next().now_or_never().flatten();
        }
    }

    fn settle(&mut self, called: Called) {
        let Called {
            key: (id, number),
            retry,
            outcome,
            took,
        } = called;
        self.calling
            .retain(|(step, attempt)| (step, *attempt) != (&id, number));
        measure::step("HTTP", took, matches!(outcome, http::Outcome::Succeeded(_)));
        if !is_open(&self.draft.run, &id, number) {
            return;
        }
        let now = self.now();
        match outcome {
            http::Outcome::Succeeded(output) => {
                self.draft.step_succeeded(&id, number, output, now);
            }
            http::Outcome::Failed {
                error,
                again,
                not_before,
            } => {
                let next = again.then(|| retry_at(&retry, number, now, chance(), not_before));
                self.draft
                    .step_failed(&id, number, shortened(&error), next.flatten(), now);
            }
        }
    }

    /// Appends what is decided; `false` where the run had to be read again instead.
    async fn append(&mut self) -> Result<bool, Stop> {
        let commit = self.draft.commit();
        let mut pause = AGAIN;
        loop {
            match self.job.shared.log.commit(commit.clone()).await {
                Ok(position) => {
                    measure::appended(&commit);
                    self.draft.appended(position.sequence());
                    self.reloads = 0;
                    return Ok(true);
                }
                Err(AppendError::Conflict) => {
                    self.reload().await?;
                    return Ok(false);
                }
                Err(AppendError::Unavailable(reason)) => {
                    // The same commit cannot be appended twice, nor over another's: trying again
                    // is right even when the lease has gone meanwhile.
                    tracing::debug!(reason, "A run waits for the log");
                    sleep(pause).await;
                    pause = (pause * 2).min(AGAIN_MAX);
                }
                Err(error @ (AppendError::TooLarge | AppendError::Malformed(_))) => {
                    self.reload().await?;
                    let failed = End::Failed(error.to_string());
                    self.draft.ended(failed, self.now());
                    return Ok(false);
                }
            }
        }
    }

    /// Somebody else wrote to the run: what was decided is void.
    async fn reload(&mut self) -> Result<(), Stop> {
        self.reloads += 1;
        if self.reloads > RELOADS {
            return Err(Stop(Outcome::Again));
        }
        self.prepared.clear();
        let loaded = self.job.shared.log.load(&self.draft.stream).await;
        let events = loaded.map_err(|_| Stop(Outcome::Again))?;
        self.draft = job::draft(&events)?;
        Ok(())
    }
}

fn is_open(run: &Run, step: &StepId, number: u32) -> bool {
    let found = run.steps.get(step);
    let open =
        |step: &domain::run::Step| step.state == StepState::Running && step.attempt == number;
    !run.state.is_end() && found.is_some_and(open)
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(ERROR) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A number from 0 to 1.
fn chance() -> f64 {
    let [a, b, c, d, ..] = Uuid::new_v4().into_bytes();
    f64::from(u32::from_be_bytes([a, b, c, d])) / f64::from(u32::MAX)
}
