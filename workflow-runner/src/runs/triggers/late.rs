//! What came in time although it has not been matched yet.
//!
//! A wait's time may be over while events from before are still to be matched: after a standstill,
//! or behind many others. Before a wait ends by its timeout, its run's job looks through the events
//! that no checkpoint says have been matched.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use domain::template::Scope;
use domain::webhook;
use event_log::{EventLog, Item, ReadError};
use schemas::{Event, Log, OrgId, Recorded, StepId, StreamId, Visibility};
use serde_json::Value;
use service::Clock;

use super::super::program::Program;
use super::super::renderer::Renderer;
use super::checkpoint::Note;
use super::settle::came;
use super::shown::shown;
use crate::checkpoints::{Checkpoints, Kind};
use crate::leases::partition_of;
use crate::people::People;

const EVENTS_AT_ONCE: usize = 256;

/// Looks for what came in time.
pub(in super::super) struct LookBack {
    pub(in super::super) log: EventLog,
    pub(in super::super) people: People,
    pub(in super::super) clock: Arc<dyn Clock>,
    renderer: Renderer,
    checkpoints: Checkpoints<Note>,
}

/// A wait whose time is over.
pub(in super::super) struct Late {
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

impl LookBack {
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
        })
    }

    /// The output of the event that was waited for, if it came in time.
    pub(in super::super) async fn find(
        &self,
        late: &Late,
        program: &Arc<Program>,
    ) -> Result<Option<Value>, ReadError> {
        let org = &late.run.org;
        let Some(began) = self.began(late).await? else {
            return Ok(None);
        };
        let partition = partition_of(org.as_str());
        let noted = self.checkpoints.read(partition).await.unwrap_or_default();
        let mut after = began.max(noted.through);
        loop {
            let page = self
                .log
                .catch_up()
                .page(Log::Events, org, None, after, EVENTS_AT_ONCE);
            let page = page.await?;
            for item in page.items {
                if let Item::Event(recorded) = item
                    && let Some(came) = self.is_for(org, late, program, &recorded).await
                {
                    return Ok(Some(came));
                }
            }
            if page.complete {
                return Ok(None);
            }
            after = page.through;
        }
    }

    /// Where the wait began.
    async fn began(&self, late: &Late) -> Result<Option<u64>, ReadError> {
        let events = self.log.load(&late.run).await?;
        let found = events.iter().find(|recorded| {
            matches!(&recorded.event, Event::RunEventAwaited(awaited)
                if awaited.step_id == late.step && awaited.attempt == late.attempt)
        });
        Ok(found.map(|recorded| recorded.sequence))
    }

    async fn is_for(
        &self,
        org: &OrgId,
        late: &Late,
        program: &Arc<Program>,
        recorded: &Recorded,
    ) -> Option<Value> {
        let public = recorded.event.visibility() == Visibility::Public;
        let named = public && webhook::matches(&late.event, &recorded.event.name());
        if !named || recorded.time > late.until {
            return None;
        }
        let data = shown(&self.people, recorded, org, self.clock.now()).await?;
        let data = Arc::new(data);
        let scope = late.scope.with_event(&data);
        let (program, step) = (Arc::clone(program), late.step.clone());
        let ask = move |meter: &_| program.matches(&step, &scope, meter);
        // An error was or will be told where the event is matched.
        let holds = self.renderer.ask(org, ask).await.unwrap_or(false);
        holds.then(|| came(recorded, &data))
    }
}
