//! Carrying a run on: decide, append, act, and repeat.
//!
//! What is decided ([`domain::run::next`]) is appended in one commit, and only then acted on. The
//! commit expects the run's own last sequence, so if two jobs carry on one run, in whatever
//! processes, only one gets further; the other reads the run again.

mod calls;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::run::{Attempt, End, Next, State, Work, next};
use domain::shortened;
use domain::template::Scrub;
use event_log::{AppendError, ReadError};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use schemas::run::Way;
use schemas::workflow::Action;
use schemas::{Event, Recorded, StepId};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::sleep;
use traces::{Span, Traced as _};

use super::capacity::{Weight, Working};
use super::draft::Draft;
use super::job::{self, Job, Outcome, Stop};
use super::measure;
use super::program::Program;
use super::secrets::Values;
use super::steps::{self, Begun, Call, Done, Surroundings};
use crate::retry::retry_while;
use calls::{Called, Load};

/// Number of events after which a decision is appended before it continues. With what comes from
/// outside meanwhile, two events for each step at most, they still fit into one commit.
const EVENTS_AT_ONCE: usize = 100;
/// How often a run is read again because of other writers, before its job lets it go.
const RELOADS: u32 = 5;
const AGAIN: Duration = Duration::from_millis(50);
/// How many characters of an error are recorded.
const LONGEST_ERROR: usize = 1_000;

type CallKey = (StepId, u32);

/// A run in progress.
pub(super) struct Executor<'j> {
    job: &'j Job,
    draft: Draft,
    program: Arc<Program>,
    values: Arc<Values>,
    scrub: Arc<Scrub>,
    /// Calls whose start is decided but not yet appended.
    prepared: HashMap<CallKey, (Call, Span)>,
    calls: FuturesUnordered<BoxFuture<'j, Called>>,
    calling: HashMap<CallKey, Load>,
    /// Held while there is work to do, given back while only answers are awaited.
    working: Option<Working>,
    weight: Option<Weight>,
    ended: watch::Receiver<u64>,
    news: watch::Receiver<u64>,
    reloads: u32,
}

impl<'j> Executor<'j> {
    pub(super) fn new(job: &'j Job, draft: Draft, program: Arc<Program>, working: Working) -> Self {
        Self {
            job,
            draft,
            program,
            values: Arc::default(),
            scrub: Arc::new(Scrub::default()),
            prepared: HashMap::new(),
            calls: FuturesUnordered::new(),
            calling: HashMap::new(),
            working: Some(working),
            weight: None,
            ended: job.ended.clone(),
            news: job.news.clone(),
            reloads: 0,
        }
    }

    /// Decides, appends, acts, and waits for the results; an outcome ends the job.
    pub(super) async fn round(&mut self) -> Result<Option<Outcome>, Stop> {
        self.work().await;
        if let Err(stop) = self.read_secrets().await {
            return self.go_on_without(stop).await;
        }
        self.decide().await;
        if !self.draft.is_empty() && !self.append().await? {
            return Ok(None);
        }
        let program = Arc::clone(&self.program);
        let work = match next(&self.draft.run, &program.graph, self.now()) {
            Next::Ended => return Ok(Some(self.ended())),
            Next::Work(work) if work.begin.is_empty() && delays(&work).next().is_none() => work,
            Next::Work(_) | Next::Start | Next::End(_) => return Ok(None),
        };
        for attempt in &work.open {
            self.call(attempt).await?;
        }
        for (attempt, _) in &work.over {
            self.search_missed_events(attempt);
        }
        if !self.draft.is_empty() {
            return Ok(None);
        }
        let until = work.wake_at();
        if self.calls.is_empty() {
            let known = self.draft.sequence;
            return Ok(Some(Outcome::Waits { until, known }));
        }
        let until = self.time_until(until);
        self.rest();
        let (known, ended, news) = (self.draft.sequence, &mut self.ended, &mut self.news);
        tokio::select! {
            true = async { ended.wait_for(|at| *at > known).await.is_ok() } => {
                return Ok(Some(self.ended()));
            }
            () = sleep(until) => {}
            called = self.calls.next() => self.settle_all(called),
            // Another writer has written to the run: the event that a step waits for has come.
            true = async { news.wait_for(|news| *news > known).await.is_ok() } => {
                if self.reload().await.is_err() {
                    sleep(AGAIN).await;
                }
            }
        }
        Ok(None)
    }

    fn ended(&self) -> Outcome {
        Outcome::Ended {
            known: self.draft.sequence,
        }
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
        let read = read.map_err(|error| {
            tracing::debug!(%error, "A run is waiting for its secrets");
            Stop(Outcome::Again)
        })?;
        self.values = Arc::new(read);
        self.scrub = Arc::new(Scrub::new(self.values.iter()));
        Ok(())
    }

    /// Nothing more can be decided: what has come from outside is appended, and what is under way
    /// awaited. It would be asked for again otherwise.
    async fn go_on_without(&mut self, stop: Stop) -> Result<Option<Outcome>, Stop> {
        while !self.draft.is_empty() {
            self.append().await?;
        }
        if self.calls.is_empty() {
            return Err(stop);
        }
        tokio::select! {
            () = sleep(AGAIN) => {}
            called = self.calls.next() => self.settle_all(called),
        }
        Ok(None)
    }

    /// Decides as far as possible without an answer from outside.
    async fn decide(&mut self) {
        let program = Arc::clone(&self.program);
        while self.draft.len() < EVENTS_AT_ONCE {
            let now = self.now();
            match next(&self.draft.run, &program.graph, now) {
                Next::Ended => return,
                Next::Start => self.draft.started(now),
                Next::End(end) => self.draft.ended(end, now),
                Next::Work(work) if delays(&work).next().is_some() => {
                    for attempt in delays(&work) {
                        let (id, number) = (&attempt.step.id, attempt.number);
                        let over = (Way::Next, Value::Null);
                        self.draft.step_succeeded(id, number, over, now);
                    }
                }
                Next::Work(work) if work.begin.is_empty() => {
                    let idle = work.open.is_empty() && work.over.is_empty();
                    let waits = idle && self.draft.run.state != State::Waiting;
                    if let (Some(waiting), true) = (&work.waiting, waits) {
                        let until = waiting.until.min(work.deadline);
                        self.draft.waits(&waiting.step, until, now);
                    }
                    return;
                }
                Next::Work(work) => {
                    for attempt in &work.begin {
                        // What is left is found again once these are appended.
                        if self.draft.len() >= EVENTS_AT_ONCE {
                            return;
                        }
                        self.begin(attempt, now).await;
                    }
                }
            }
        }
    }

    async fn begin(&mut self, attempt: &Attempt<'_>, now: DateTime<Utc>) {
        let (id, number) = (&attempt.step.id, attempt.number);
        let span = self.draft.span_of(attempt);
        let begun = self.prepare(attempt).within(&span).await;
        let begun = begun.and_then(|begun| match self.draft.run.room_for(begun.input()) {
            Ok(()) => Ok(begun),
            Err(error) => Err(error.to_string()),
        });
        match begun {
            Ok(Begun::Done(mut done)) => {
                self.draft.step_started(id, number, done.input.take(), now);
                self.done(id, number, *done, now);
            }
            Ok(Begun::Call { input, call }) => {
                self.draft.step_started(id, number, input, now);
                self.prepared.insert((id.clone(), number), (call, span));
            }
            Ok(Begun::Waits { input, event }) => {
                self.draft.step_started(id, number, input, now);
                if let Some(event) = event {
                    self.draft.event_awaited(id, number, event, now);
                }
            }
            Err(error) => {
                span.failed();
                self.draft.step_started(id, number, Value::Null, now);
                self.draft.step_failed(id, number, error, None, now);
            }
        }
    }

    fn done(&mut self, id: &StepId, number: u32, done: Done, now: DateTime<Utc>) {
        if let Some(event) = done.says {
            self.draft.push(event, now);
        }
        let outcome = (done.way, done.output);
        self.draft.step_succeeded(id, number, outcome, now);
    }

    /// Renders a step's templates and judges the result.
    fn prepare(&self, attempt: &Attempt<'_>) -> BoxFuture<'j, Result<Begun, String>> {
        let (program, step) = (Arc::clone(&self.program), attempt.step.id.clone());
        let run = self.draft.run.id.clone();
        let scope = steps::scope_of(&self.draft.run, &self.program);
        let (values, scrub) = (Arc::clone(&self.values), Arc::clone(&self.scrub));
        let org = self.draft.stream.org.clone();
        let evaluator = self.job.shared.renderer.evaluator();
        let begin = move |meter: &_| {
            let with = Surroundings {
                run: &run,
                scope: &scope,
                secrets: &values,
                meter,
            };
            steps::begin(&program, &step, &with)
        };
        Box::pin(async move {
            let begun = evaluator.run(&org, begin).await;
            let begun = begun.map_err(|failed| failed.to_string()).flatten();
            begun.map_err(|error| shortened(&scrub.text(&error), LONGEST_ERROR))
        })
    }

    /// Appends what is decided; returns `false` if the run had to be read again instead.
    async fn append(&mut self) -> Result<bool, Stop> {
        // The same commit cannot be appended twice, nor over another's: retrying is right even if
        // the lease has been lost meanwhile.
        let log = &self.job.shared.log;
        let commit = || log.commit(self.draft.commit());
        match retry_while(commit, AppendError::passes).await {
            Ok(position) => {
                measure::appended(self.draft.events());
                self.draft.appended(position.sequence());
                self.reloads = 0;
                Ok(true)
            }
            Err(AppendError::Conflict) => {
                let outcomes = self.take_outcomes();
                self.reloads += 1;
                if self.reloads > RELOADS && outcomes.is_empty() {
                    return Err(Stop(Outcome::Again));
                }
                let load = || log.load(&self.draft.stream);
                let loaded = retry_while(load, ReadError::passes).await;
                self.reloaded(loaded)?;
                let now = self.now();
                self.draft.keep(outcomes, now);
                Ok(false)
            }
            Err(error) => {
                self.reload().await?;
                let failed = End::Failed(error.to_string());
                self.draft.ended(failed, self.now());
                Ok(false)
            }
        }
    }

    /// Takes what has come from outside out of what was decided: it stays true whatever others have
    /// written to the run, and asking for it again would do it again.
    fn take_outcomes(&mut self) -> Vec<Event> {
        let steps = &self.program.graph.definition().steps;
        self.draft.take_outcomes(|id| {
            let step = steps.iter().find(|step| step.id == *id);
            step.is_some_and(|step| {
                matches!(step.action, Action::Http(_) | Action::WaitForEvent(_))
            })
        })
    }

    /// Reads the run again after another writer changed it: what was decided is void.
    async fn reload(&mut self) -> Result<(), Stop> {
        let loaded = self.job.shared.log.load(&self.draft.stream).await;
        self.reloaded(loaded)
    }

    fn reloaded(&mut self, loaded: Result<Vec<Recorded>, ReadError>) -> Result<(), Stop> {
        self.prepared.clear();
        self.draft = job::draft(&loaded.map_err(job::unread)?)?;
        Ok(())
    }
}

/// The delays that are due. A wait for an event is over only when no event is found that came in
/// time.
fn delays<'w>(work: &'w Work<'_>) -> impl Iterator<Item = &'w Attempt<'w>> {
    let over = work.over.iter().map(|(attempt, _)| attempt);
    over.filter(|attempt| matches!(attempt.step.action, Action::Delay(_)))
}
