//! Events that came in time but have not been matched yet.
//!
//! A wait's time may be over while earlier events are still to be matched: after an outage, or
//! behind many others. Before a wait ends by its timeout, its run's job searches the events that no
//! checkpoint records as matched. Many waits may be over at once: those of one organization search
//! together, so that its events are read once rather than for each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use domain::template::Scope;
use domain::webhook;
use event_log::{EventLog, ReadError};
use schemas::{Event, Log, OrgId, Recorded, StepId, StreamId, Visibility};
use serde_json::Value;
use service::Clock;
use tokio::sync::oneshot;

use super::super::program::Program;
use super::super::renderer::Renderer;
use super::about::Noter;
use super::checkpoint::TriggerCheckpoint;
use super::end_wait::event_output;
use super::event_visibility::visible_data;
use crate::checkpoints::{Checkpoints, Kind};
use crate::leases::partition_of;
use crate::people::People;

const EVENTS_AT_ONCE: usize = 256;

/// Searches for events that came in time.
pub(in super::super) struct MissedEventSearch {
    pub(in super::super) log: EventLog,
    pub(in super::super) people: People,
    pub(in super::super) clock: Arc<dyn Clock>,
    renderer: Renderer,
    checkpoints: Checkpoints<TriggerCheckpoint>,
    groups: Mutex<HashMap<OrgId, Arc<Group>>>,
}

/// The waits of one organization that search together.
#[derive(Default)]
struct Group {
    /// Held by the one that searches, for all that wait by then.
    turn: tokio::sync::Mutex<()>,
    waiting: Mutex<Vec<Waiting>>,
}

/// A wait that is searched for.
struct Waiting {
    wait: Arc<ExpiredWait>,
    program: Arc<Program>,
    /// Where the wait began.
    began: u64,
    tell: oneshot::Sender<Option<Value>>,
}

/// A wait whose time is over.
pub(in super::super) struct ExpiredWait {
    pub(in super::super) run: StreamId,
    pub(in super::super) step: StepId,
    pub(in super::super) attempt: u32,
    /// The type that was waited for.
    pub(in super::super) event: String,
    /// Until when.
    pub(in super::super) until: DateTime<Utc>,
    /// What a match sees of the run.
    pub(in super::super) scope: Scope,
}

impl MissedEventSearch {
    pub(in super::super) async fn open(
        log: &EventLog,
        people: People,
        clock: Arc<dyn Clock>,
        renderer: Renderer,
    ) -> Result<Self, event_log::Error> {
        Ok(Self {
            log: log.clone(),
            people,
            clock,
            renderer,
            checkpoints: Checkpoints::open(log, Kind::Triggers).await?,
            groups: Mutex::default(),
        })
    }

    /// The output of the event that was waited for, if it came in time.
    pub(in super::super) async fn find(
        &self,
        wait: ExpiredWait,
        program: &Arc<Program>,
    ) -> Result<Option<Value>, ReadError> {
        let Some(began) = self.began(&wait).await? else {
            return Ok(None);
        };
        let wait = Arc::new(wait);
        let group = self.group(&wait.run.org);
        loop {
            let (tell, mut told) = oneshot::channel();
            group.add(Waiting {
                wait: Arc::clone(&wait),
                program: Arc::clone(program),
                began,
                tell,
            });
            let _turn = group.turn.lock().await;
            if let Ok(found) = told.try_recv() {
                return Ok(found);
            }
            // The search for this one was dropped, or it is the first of those that wait now.
            self.look(&wait.run.org, group.take()).await?;
            if let Ok(found) = told.try_recv() {
                return Ok(found);
            }
        }
    }

    /// The group of an organization; groups that nobody uses are dropped.
    fn group(&self, org: &OrgId) -> Arc<Group> {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        groups.retain(|_, group| Arc::strong_count(group) > 1);
        Arc::clone(groups.entry(org.clone()).or_default())
    }

    /// Searches an organization's events for all of these, and sends each what came in time.
    async fn look(&self, org: &OrgId, mut waiting: Vec<Waiting>) -> Result<(), ReadError> {
        let Some(began) = waiting.iter().map(|one| one.began).min() else {
            return Ok(());
        };
        let partition = partition_of(org.as_str());
        let noted = self.checkpoints.read(partition).await.unwrap_or_default();
        let mut after = began.max(noted.through);
        while !waiting.is_empty() {
            let page = self
                .log
                .catch_up()
                .page(Log::Events, org, None, after, EVENTS_AT_ONCE);
            let page = page.await?;
            for recorded in page.events() {
                waiting = self.notify(org, recorded, waiting).await;
            }
            waiting.retain(|one| !one.tell.is_closed());
            after = page.through;
            if page.complete {
                break;
            }
        }
        for one in waiting {
            let _ = one.tell.send(None);
        }
        Ok(())
    }

    /// Notifies those that an event is for, and returns the others. The data shown of the event is
    /// the same for all of them.
    async fn notify(
        &self,
        org: &OrgId,
        recorded: &Recorded,
        waiting: Vec<Waiting>,
    ) -> Vec<Waiting> {
        let is_public = recorded.event.visibility() == Visibility::Public;
        if !is_public || !waiting.iter().any(|one| one.may_want(recorded)) {
            return waiting;
        }
        let Some(data) = visible_data(&self.people, recorded, org, self.clock.now()).await else {
            return waiting;
        };
        let data = Arc::new(data);
        let mut left = Vec::with_capacity(waiting.len());
        for one in waiting {
            if one.may_want(recorded)
                && self.matches(org, &one, &data).await
                && self.noter().may_hold(recorded, &one.wait.run).await
            {
                // A job that has ended meanwhile no longer listens.
                let _ = one.tell.send(Some(event_output(recorded, &data)));
            } else {
                left.push(one);
            }
        }
        left
    }

    fn noter(&self) -> Noter<'_> {
        Noter {
            log: &self.log,
            people: &self.people,
            clock: &*self.clock,
        }
    }

    /// Where the wait began.
    async fn began(&self, wait: &ExpiredWait) -> Result<Option<u64>, ReadError> {
        let events = self.log.load(&wait.run).await?;
        let found = events.iter().find(|recorded| {
            matches!(&recorded.event, Event::RunEventAwaited(awaited)
                if awaited.step_id == wait.step && awaited.attempt == wait.attempt)
        });
        Ok(found.map(|recorded| recorded.sequence))
    }

    async fn matches(&self, org: &OrgId, one: &Waiting, data: &Arc<Value>) -> bool {
        let scope = one.wait.scope.with_event(data);
        let (program, step) = (Arc::clone(&one.program), one.wait.step.clone());
        let ask = move |meter: &_| program.matches(&step, &scope, meter);
        // An error was or will be reported where the event is matched.
        self.renderer.ask(org, ask).await.unwrap_or(false)
    }
}

impl Waiting {
    /// Whether an event is of the type that is waited for, and came in time.
    fn may_want(&self, recorded: &Recorded) -> bool {
        recorded.sequence > self.began
            && recorded.time <= self.wait.until
            && webhook::matches(&self.wait.event, &recorded.event.name())
    }
}

impl Group {
    fn add(&self, one: Waiting) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(one);
    }

    fn take(&self) -> Vec<Waiting> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut waiting)
    }
}
