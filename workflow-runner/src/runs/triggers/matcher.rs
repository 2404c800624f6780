//! Matches events with the workflows that they set off and the steps that wait for them.

mod notices;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use domain::template::Scope;
use event_log::{AppendError, Commit, EventLog, Item, Page, ReadError};
use futures::{StreamExt as _, stream};
use schemas::workflow::WhyNot;
use schemas::{AccountId, Cause, Event, Log, OrgId, Recorded, StreamId, Visibility, WorkflowId};
use serde_json::Value;
use service::Clock;
use tokio::task::consume_budget;
use tokio::time::sleep;

use super::super::measure;
use super::super::open::OpenRuns;
use super::super::renderer::Renderer;
use super::cause_counts::{BatchCounts, CauseCounts, MAX_HOPS, Verdict};
use super::event_visibility::visible_data;
use super::org_queues::Task;
use super::waits::Waits;
use super::workflows::{Listener, Scheduled, Workflows};
use crate::people::People;
use crate::retry::retry_while;
use notices::MatchNotices;

const EVENTS_AT_ONCE: usize = 256;
/// Runs that one organization's events begin at the same time.
const TRIGGERS_AT_ONCE: usize = 8;
/// Waits that are checked at the same time for whether an event is theirs.
const WAITS_AT_ONCE: usize = 16;
pub(super) const AGAIN: Duration = Duration::from_millis(100);

/// The known workflows and waits.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) workflows: Workflows,
    pub(super) waits: Waits,
}

impl Index {
    /// Takes in what an event says of workflows and waits; `folded_to` is up to where its partition
    /// has been taken in, if it is served here. The events up to there may be delivered again for
    /// other partitions: what they say of waits is long out of date. Returns a workflow that the
    /// clock sets off, if that is what was saved.
    pub(super) fn learn(
        &mut self,
        recorded: &Recorded,
        folded_to: Option<u64>,
    ) -> Option<Arc<Scheduled>> {
        if folded_to.is_some_and(|folded_to| folded_to < recorded.sequence) {
            self.waits.apply(recorded);
        }
        self.workflows.apply(recorded)
    }
}

/// Matches events of any organization.
pub(super) struct Matcher {
    pub(super) log: EventLog,
    pub(super) people: People,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) renderer: Renderer,
    pub(super) index: RwLock<Index>,
    pub(super) cause_counts: Mutex<CauseCounts>,
    pub(super) match_notices: Mutex<MatchNotices>,
    /// Runs that one cause may lead to.
    pub(super) budget: u32,
    pub(super) open_runs: OpenRuns,
}

/// The results of matching a batch of an organization's events.
#[derive(Default)]
struct Decided {
    batch: BatchCounts,
    /// The organization belongs to another process now, or did in between.
    is_void: bool,
    triggers: Vec<Trigger>,
    /// Notices about workflows that were not set off.
    notices: Vec<Commit>,
}

/// A run that an event sets off.
pub(super) struct Trigger {
    pub(super) commit: Commit,
    /// The person whose data it is given.
    pub(super) about: Option<AccountId>,
}

/// Whom an event concerns.
struct Concerned {
    /// The workflows that listen to it.
    listeners: Vec<Arc<Listener>>,
    /// Whether any step waits for it. There may be very many of them.
    any_waits: bool,
}

impl Matcher {
    pub(super) fn read<T>(&self, read: impl FnOnce(&Index) -> T) -> T {
        read(&self.index.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn write<T>(&self, write: impl FnOnce(&mut Index) -> T) -> T {
        write(&mut self.index.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether any workflow listens to an event or any step waits for it.
    pub(super) fn concerns_anybody(&self, recorded: &Recorded) -> bool {
        let concerned = self.concerned(recorded);
        concerned.any_waits || !concerned.listeners.is_empty()
    }

    fn concerned(&self, recorded: &Recorded) -> Concerned {
        if recorded.event.visibility() != Visibility::Public {
            return Concerned {
                listeners: Vec::new(),
                any_waits: false,
            };
        }
        let (org, sequence) = (&recorded.stream.org, recorded.sequence);
        let name = recorded.event.name();
        // Otherwise a notice would be a way around the bound that it reports.
        let sets_off = !matches!(recorded.event, Event::WorkflowNotTriggered(_));
        self.read(|index| {
            let listeners = index.workflows.listeners(org, &name, sequence);
            let listeners =
                listeners.filter(|listener| sets_off && !is_own_life(recorded, &listener.workflow));
            Concerned {
                listeners: listeners.cloned().collect(),
                any_waits: index.waits.any_waits(org, &name, sequence),
            }
        })
    }

    /// Matches an organization's events in order; returns up to where, or 0 if they have to be
    /// matched again.
    pub(super) async fn match_events(&self, org: &OrgId, task: Task, batch: BatchCounts) -> u64 {
        let (events, through) = match task {
            Task::Events(events, _) => {
                let last = events.last().map_or(0, |last| last.sequence);
                (events, last)
            }
            Task::Behind { after, until } => self.read_behind(org, after, until).await,
        };
        let mut decided = Decided {
            batch,
            ..Decided::default()
        };
        let counted = decided.batch.through;
        for recorded in events.iter().filter(|event| event.sequence > counted) {
            self.consider(recorded, &mut decided).await;
            if decided.is_void {
                return 0;
            }
            // With many events, none alone may take long enough to yield.
            consume_budget().await;
        }
        let triggers = self.noted(decided.triggers).await;
        self.append(triggers, measure::triggered).await;
        self.append(decided.notices, || {}).await;
        if self.cause_counts().close(org, decided.batch, through) {
            through
        } else {
            0
        }
    }

    /// Reads an organization's events after `after`, at most up to `until`.
    async fn read_behind(&self, org: &OrgId, after: u64, until: u64) -> (Vec<Arc<Recorded>>, u64) {
        let page: Page = loop {
            let page = self
                .log
                .catch_up()
                .page(Log::Events, org, None, after, EVENTS_AT_ONCE);
            match page.await {
                Ok(page) => break page,
                Err(error) => {
                    tracing::debug!(%error, "Triggers: waiting for the log");
                    sleep(AGAIN).await;
                }
            }
        };
        let through = if page.complete || page.items.is_empty() {
            until
        } else {
            page.through.min(until)
        };
        let events = page.items.into_iter().filter_map(|item| match item {
            Item::Event(recorded) if recorded.sequence <= until => Some(recorded),
            // Events that cannot be read set nothing off; the tail has reported them.
            _ => None,
        });
        (events.collect(), through)
    }

    async fn consider(&self, recorded: &Recorded, decided: &mut Decided) {
        let concerned = self.concerned(recorded);
        if concerned.listeners.is_empty() && !concerned.any_waits {
            return;
        }
        let org = &recorded.stream.org;
        let now = self.clock.now();
        let Some(data) = visible_data(&self.people, recorded, org, now).await else {
            return;
        };
        let data = Arc::new(data);
        let scope = Scope::of_event(&data);
        for listener in concerned.listeners {
            match self.is_meant(recorded, &listener, &scope).await {
                Ok(true) => self.set_off(recorded, &listener, &data, decided),
                Ok(false) => {}
                Err(error) => {
                    let notice = self.filter_failed(recorded, &listener, error);
                    decided.notices.extend(notice);
                }
            }
        }
        if concerned.any_waits {
            self.end_waits(recorded, &data).await;
        }
    }

    /// Ends the waits that an event is for.
    async fn end_waits(&self, recorded: &Recorded, data: &Arc<Value>) {
        let (org, name) = (&recorded.stream.org, recorded.event.name());
        let mut after = 0;
        loop {
            let between = (after, recorded.sequence);
            let some = self.read(|index| index.waits.waiting(org, &name, between));
            let Some(last) = some.last() else { return };
            after = last.sequence;
            stream::iter(some)
                .map(|wait| self.end_wait(org, wait, recorded, data))
                .buffer_unordered(WAITS_AT_ONCE)
                .collect::<()>()
                .await;
        }
    }

    /// Whether a workflow wants to be set off by an event, or why that cannot be decided.
    async fn is_meant(
        &self,
        recorded: &Recorded,
        listener: &Listener,
        scope: &Scope,
    ) -> Result<bool, String> {
        let Some(filter) = &listener.filter else {
            return Ok(true);
        };
        let (org, scope) = (&recorded.stream.org, scope.clone());
        let filter = self.renderer.filter(org, filter);
        let filter = filter.map_err(|error| error.to_string())?;
        let ask = move |meter: &_| filter.holds(&scope, meter);
        self.renderer.ask(org, ask).await
    }

    /// Sets a workflow off, unless the event's cause has already led to too much, or the
    /// organization has too many runs open.
    fn set_off(&self, by: &Recorded, listener: &Listener, data: &Value, decided: &mut Decided) {
        let org = &by.stream.org;
        if self.open_runs.is_full(org, decided.triggers.len()) {
            return decided.notices.extend(self.too_many_open(by, listener));
        }
        let (itself, hops) = (Cause::new(by.id.0), by.context.hops);
        let verdict = match Cause::of(by) {
            // What came from outside sets each workflow off once, which is bounded in itself.
            None if hops < MAX_HOPS => Some(Verdict::SetsOff(itself)),
            cause => {
                let counted = (cause.unwrap_or(itself), hops);
                let batch = &mut decided.batch;
                self.cause_counts().decide(org, batch, counted, self.budget)
            }
        };
        match verdict {
            None => decided.is_void = true,
            Some(Verdict::SetsOff(cause)) => {
                let commit = self.triggered_by_event(by, listener, data, cause);
                let about = by.event.personal().map(|(account, _)| account);
                decided.triggers.push(Trigger { commit, about });
            }
            Some(Verdict::Refused { bound, notice }) => {
                measure::unmatched(WhyNot::from(bound).name());
                let notice = notice.map(|nth| self.bound_met(by, listener, bound, nth));
                decided.notices.extend(notice);
            }
        }
    }

    pub(super) fn cause_counts(&self) -> MutexGuard<'_, CauseCounts> {
        self.cause_counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends commits separately. One that is already in the log was appended before, by this or
    /// another process: its run has the same id.
    pub(super) async fn append(&self, triggers: Vec<Commit>, appended: impl Fn()) {
        for part in triggers.chunks(TRIGGERS_AT_ONCE) {
            self.append_part(part.to_vec(), &appended).await;
        }
    }

    async fn append_part(&self, mut triggers: Vec<Commit>, appended: impl Fn()) {
        while !triggers.is_empty() {
            let outcomes = self.log.commit_each(triggers.clone()).await;
            let mut left = Vec::new();
            for (commit, outcome) in triggers.into_iter().zip(outcomes) {
                match outcome {
                    Ok(_) => appended(),
                    Err(AppendError::Conflict) => {}
                    Err(error) if error.passes() => {
                        tracing::debug!(%error, "A trigger waits for the log");
                        left.push(commit);
                    }
                    Err(error) => {
                        measure::unmatched("trigger");
                        tracing::error!(%error, "A workflow could not be triggered");
                    }
                }
            }
            triggers = left;
            if !triggers.is_empty() {
                sleep(AGAIN).await;
            }
        }
    }

    /// A run's events; `None` where they cannot be read.
    pub(super) async fn run(&self, stream: &StreamId) -> Option<Vec<Recorded>> {
        // One that cannot be read is ended by its own job.
        retry_while(|| self.log.load(stream), ReadError::passes)
            .await
            .ok()
    }
}

/// Events of a workflow's own runs do not set it off: that would end only at the bound of hops,
/// with many runs for each. What its runs notify or record may.
fn is_own_life(recorded: &Recorded, workflow: &WorkflowId) -> bool {
    let of = match &recorded.event {
        Event::WorkflowTriggered(event) => &event.workflow_id,
        Event::RunStarted(event) => &event.workflow_id,
        Event::RunStepStarted(event) => &event.workflow_id,
        Event::RunStepSucceeded(event) => &event.workflow_id,
        Event::RunStepFailed(event) => &event.workflow_id,
        Event::RunWaiting(event) => &event.workflow_id,
        Event::RunSucceeded(event) => &event.workflow_id,
        Event::RunFailed(event) => &event.workflow_id,
        Event::RunRetried(event) => &event.workflow_id,
        Event::RunCancelled(event) => &event.workflow_id,
        _ => return false,
    };
    of == workflow
}
