//! The runs that events and the clock begin, each under a permanent id of its own.

use chrono::{DateTime, Utc};
use domain::workflow::{TriggeredBy, payload};
use event_log::{Commit, Expected, Write};
use schemas::workflow::Triggered;
use schemas::{
    AggregateType, Cause, Context, Event, EventId, NewEvent, OrgId, Recorded, RunId, StreamId,
};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::matcher::Matcher;
use super::workflows::{Listener, Scheduled};

impl Matcher {
    /// The run of a workflow that an event sets off.
    pub(super) fn triggered_by_event(
        &self,
        by: &Recorded,
        listener: &Listener,
        data: &Value,
        cause: Cause,
    ) -> Commit {
        let org = &by.stream.org;
        let parts = [
            org.as_str().as_bytes(),
            listener.workflow.as_str().as_bytes(),
            by.id.0.as_bytes(),
        ];
        let run = self.log.keyring().derived_uuid("run of an event", &parts);
        let given = data.as_object().cloned().unwrap_or_default();
        let context = Context {
            hops: by.context.hops.saturating_add(1),
            cause: Some(cause),
            ..Context::caused_by(by)
        };
        let now = self.clock.now();
        let triggered = Triggered {
            run_id: RunId::from(run),
            workflow_id: listener.workflow.clone(),
            workflow_version: listener.version,
            trigger_payload: payload(given, TriggeredBy::Event, now),
        };
        trigger(org, triggered, context, now)
    }

    /// The run of a workflow at a time of its schedule.
    pub(super) fn triggered_by_clock(
        &self,
        org: &OrgId,
        scheduled: &Scheduled,
        due: DateTime<Utc>,
    ) -> Commit {
        let minute = due.timestamp().to_be_bytes();
        let parts = [
            org.as_str().as_bytes(),
            scheduled.workflow.as_str().as_bytes(),
            &minute,
        ];
        let run = self.log.keyring().derived_uuid("run of a schedule", &parts);
        let id = Uuid::new_v4();
        let context = Context {
            correlation_id: Some(run.to_string()),
            traceparent: Some(traces::begin(id.as_u128(), id.as_u64_pair().0)),
            ..Context::default()
        };
        let now = self.clock.now();
        let mut given = Map::new();
        given.insert("scheduledFor".to_owned(), due.to_rfc3339().into());
        let triggered = Triggered {
            run_id: RunId::from(run),
            workflow_id: scheduled.workflow.clone(),
            workflow_version: scheduled.version,
            trigger_payload: payload(given, TriggeredBy::Schedule, now),
        };
        trigger(org, triggered, context, now)
    }
}

fn trigger(org: &OrgId, triggered: Triggered, context: Context, now: DateTime<Utc>) -> Commit {
    let stream = StreamId::new(org, AggregateType::Run, triggered.run_id.as_str());
    Commit::from(Write {
        stream,
        expected: Expected::Empty,
        events: vec![NewEvent {
            id: EventId(Uuid::now_v7()),
            time: now,
            event: Event::WorkflowTriggered(triggered),
            context,
            receipt: None,
        }],
    })
}
