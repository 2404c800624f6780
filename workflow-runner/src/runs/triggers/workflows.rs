//! The workflows that are set off by events or by the clock, folded from the log.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use chrono::{DateTime, Utc};
use domain::webhook;
use domain::workflow::Schedule;
use schemas::workflow::{Action, On, OnEvent, OnSchedule, Saved, Status};
use schemas::{Event, EventId, OrgId, Recorded, WorkflowId};

/// A workflow that events set off.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) workflow: WorkflowId,
    pub(super) version: u32,
    /// An expression, compiled when it is evaluated.
    pub(super) filter: Option<String>,
    event: String,
    /// It has listened to this type without a break since this sequence; only what was recorded
    /// after it counts, so that an event that is matched again gets the same answer.
    since: u64,
    pub(super) notified: Notified,
}

/// The last hours in which a workflow was notified why events did not set it off.
#[derive(Debug, Default)]
pub(super) struct Notified {
    pub(super) filter: AtomicI64,
    pub(super) open_runs: AtomicI64,
}

/// A workflow that the clock sets off.
#[derive(Debug)]
pub(super) struct Scheduled {
    pub(super) workflow: WorkflowId,
    pub(super) version: u32,
    pub(super) schedule: Schedule,
    pub(super) saved_at: DateTime<Utc>,
    /// The event that saved it.
    pub(super) saved_by: EventId,
    /// The last hour in which it was notified why a time did not set it off.
    pub(super) notified: AtomicI64,
}

/// The newest version of a workflow, as far as events or the clock set it off.
#[derive(Debug)]
struct Newest {
    sequence: u64,
    listener: Option<Arc<Listener>>,
    scheduled: Option<Arc<Scheduled>>,
}

/// All workflows.
#[derive(Debug, Default)]
pub(super) struct Workflows(HashMap<OrgId, HashMap<WorkflowId, Newest>>);

impl Workflows {
    /// Takes in a saved version; returns it if the clock sets it off. Versions older than the known
    /// one change nothing.
    pub(super) fn apply(&mut self, recorded: &Recorded) -> Option<Arc<Scheduled>> {
        let Event::WorkflowSaved(saved) = &recorded.event else {
            return None;
        };
        let of_org = self.0.entry(recorded.stream.org.clone()).or_default();
        let known = of_org.get(&saved.workflow_id);
        if known.is_some_and(|known| known.sequence >= recorded.sequence) {
            return None;
        }
        let before = known.and_then(|known| known.listener.clone());
        let on = on(saved);
        let listener = match &on {
            Some(On::Event(on)) => {
                let listener = listener(saved, on, before.as_deref(), recorded.sequence);
                Some(Arc::new(listener))
            }
            _ => None,
        };
        let scheduled = match &on {
            Some(On::Schedule(on)) => scheduled(saved, on, recorded),
            _ => None,
        };
        // A workflow without either is only remembered where older versions may be delivered again.
        if on.is_some() || known.is_some() {
            let known = Newest {
                sequence: recorded.sequence,
                listener,
                scheduled: scheduled.clone(),
            };
            of_org.insert(saved.workflow_id.clone(), known);
        }
        scheduled
    }

    /// The workflows that an event sets off, before their filters.
    pub(super) fn listeners<'a>(
        &'a self,
        org: &OrgId,
        event_type: &'a str,
        sequence: u64,
    ) -> impl Iterator<Item = &'a Arc<Listener>> + use<'a> {
        let all = self.0.get(org).into_iter().flat_map(HashMap::values);
        let listeners = all.filter_map(|known| known.listener.as_ref());
        listeners
            .filter(move |listener| listener.since < sequence)
            .filter(move |listener| webhook::matches(&listener.event, event_type))
    }

    /// A workflow, if the clock sets it off.
    pub(super) fn scheduled(&self, org: &OrgId, workflow: &WorkflowId) -> Option<Arc<Scheduled>> {
        self.0.get(org)?.get(workflow)?.scheduled.clone()
    }

    /// Every workflow that the clock sets off.
    pub(super) fn all_scheduled(&self) -> impl Iterator<Item = (&OrgId, &Arc<Scheduled>)> {
        self.0.iter().flat_map(|(org, known)| {
            let scheduled = known.values().filter_map(|known| known.scheduled.as_ref());
            scheduled.map(move |scheduled| (org, scheduled))
        })
    }
}

/// The event or schedule that sets an active workflow off.
fn on(saved: &Saved) -> Option<On> {
    let definition = &saved.definition;
    if definition.status != Status::Active {
        return None;
    }
    definition.steps.iter().find_map(|step| match &step.action {
        Action::Trigger(trigger) => trigger.on.clone(),
        _ => None,
    })
}

fn listener(saved: &Saved, on: &OnEvent, before: Option<&Listener>, sequence: u64) -> Listener {
    let since = before.filter(|before| before.event == on.event);
    Listener {
        workflow: saved.workflow_id.clone(),
        version: saved.version,
        filter: on.filter.clone(),
        event: on.event.clone(),
        since: since.map_or(sequence, |before| before.since),
        notified: Notified::default(),
    }
}

fn scheduled(saved: &Saved, on: &OnSchedule, by: &Recorded) -> Option<Arc<Scheduled>> {
    let schedule = Schedule::parse(&on.schedule, &on.timezone);
    let schedule = schedule
        .inspect_err(|error| unreadable(saved, error))
        .ok()?;
    Some(Arc::new(Scheduled {
        workflow: saved.workflow_id.clone(),
        version: saved.version,
        schedule,
        saved_at: by.time,
        saved_by: by.id,
        notified: AtomicI64::default(),
    }))
}

fn unreadable(saved: &Saved, error: &dyn std::fmt::Display) {
    let (workflow, version) = (saved.workflow_id.as_str(), saved.version);
    tracing::error!(workflow, version, %error, "A workflow's trigger cannot be read");
}

#[cfg(test)]
mod tests {
    use schemas::{AggregateType, Context, StreamId};
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;

    fn org() -> OrgId {
        OrgId::from("o")
    }

    fn saved(sequence: u64, status: &str, on: &Value) -> Recorded {
        let id = WorkflowId::from("w");
        let definition = json!({ "name": "N", "status": status,
            "steps": [{ "id": "start", "type": "TRIGGER", "on": on }] });
        let saved = Saved {
            workflow_id: id.clone(),
            version: u32::try_from(sequence).unwrap(),
            definition: domain::workflow::parse(&id, definition).unwrap(),
        };
        Recorded {
            sequence,
            stream: StreamId::new(&org(), AggregateType::Workflow, "w"),
            id: EventId(Uuid::from_u128(sequence.into())),
            time: DateTime::UNIX_EPOCH,
            event: Event::WorkflowSaved(saved),
            context: Context::default(),
            receipt: None,
        }
    }

    fn versions(workflows: &Workflows, event_type: &str, sequence: u64) -> Vec<u32> {
        let found = workflows.listeners(&org(), event_type, sequence);
        found.map(|listener| listener.version).collect()
    }

    #[test]
    fn only_what_is_recorded_while_a_workflow_listens_sets_it_off() {
        let mut workflows = Workflows::default();
        workflows.apply(&saved(5, "DRAFT", &json!({ "event": "lead.*" })));
        assert!(versions(&workflows, "lead.created", 9).is_empty());
        workflows.apply(&saved(10, "ACTIVE", &json!({ "event": "lead.*" })));
        assert!(versions(&workflows, "lead.created", 9).is_empty());
        assert_eq!(versions(&workflows, "lead.created", 11), [10]);
        assert!(versions(&workflows, "deal.created", 11).is_empty());
        // Another filter does not lose what was recorded before it was saved.
        workflows.apply(&saved(
            20,
            "ACTIVE",
            &json!({ "event": "lead.*", "filter": "data.a" }),
        ));
        assert_eq!(versions(&workflows, "lead.created", 11), [20]);
        workflows.apply(&saved(30, "PAUSED", &json!({ "event": "lead.*" })));
        assert!(versions(&workflows, "lead.created", 11).is_empty());
        // Older versions are delivered again after a restart.
        workflows.apply(&saved(20, "ACTIVE", &json!({ "event": "lead.*" })));
        assert!(versions(&workflows, "lead.created", 40).is_empty());
    }

    #[test]
    fn a_version_without_a_schedule_ends_the_one_before() {
        let mut workflows = Workflows::default();
        let on = json!({ "schedule": "* * * * *" });
        assert!(workflows.apply(&saved(1, "ACTIVE", &on)).is_some());
        assert_eq!(workflows.all_scheduled().count(), 1);
        assert!(workflows.apply(&saved(2, "PAUSED", &on)).is_none());
        assert!(workflows.scheduled(&org(), &"w".into()).is_none());
    }
}
