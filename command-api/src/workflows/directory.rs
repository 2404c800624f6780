//! The state of every workflow that a trigger needs, kept in memory.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use domain::workflow::Summary;
use event_log::{EventLog, Position, ReadError};
use schemas::{AggregateType, Event, Log, OrgId, Recorded, StreamId, WorkflowId};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::follow::follow;

/// The newest version's status of every workflow, folded from the log. It may briefly lag behind
/// what another process has saved; callers that must not see that pass a position.
#[derive(Clone)]
pub struct Directory {
    log: EventLog,
    workflows: Workflows,
    reached: watch::Receiver<u64>,
}

#[derive(Clone, Copy)]
struct Entry {
    summary: Summary,
    sequence: u64,
}

impl std::fmt::Debug for Directory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Directory(…)")
    }
}

impl Directory {
    /// Reads all saved workflows, then follows the log in the background until `shutdown`.
    pub async fn start(log: EventLog, shutdown: CancellationToken) -> Result<Self, ReadError> {
        let workflows = Workflows::default();
        let kinds = [AggregateType::Workflow];
        let known = workflows.clone();
        let take_in = move |events: Vec<Recorded>| {
            for event in &events {
                known.note(event);
            }
        };
        let reached = follow(&log, 0, &kinds, "workflows", take_in, shutdown).await?;
        Ok(Self {
            log,
            workflows,
            reached,
        })
    }

    /// Records a version that was just saved here, so that the caller's next trigger sees it.
    pub(super) fn learn(&self, org: &OrgId, id: &WorkflowId, summary: Summary, sequence: u64) {
        self.workflows.learn(org, id, summary, sequence);
    }

    /// Returns the known state of a workflow.
    pub fn get(&self, org: &OrgId, id: &str) -> Option<Summary> {
        self.workflows.get(org, id)
    }

    /// The number of workflows of an organization.
    pub(super) fn count(&self, org: &OrgId) -> usize {
        self.workflows.count(org)
    }

    /// Whether everything up to a position has been taken in.
    pub(super) fn has_reached(&self, position: Position) -> bool {
        position.log() != Log::Events || position.sequence() <= *self.reached.borrow()
    }

    /// Reads the log itself, for an answer that must be current. If the log does not answer, the
    /// known state is the best there is.
    pub(super) async fn ask_log(&self, org: &OrgId, id: &str) -> Option<Summary> {
        if !self.log.is_connected() {
            return self.get(org, id);
        }
        let stream = StreamId::new(org, AggregateType::Workflow, id);
        match self.log.last(&stream).await {
            Ok(last) => last.and_then(|recorded| self.workflows.note(&recorded)),
            Err(error) => {
                tracing::warn!(%error, "Cannot look up a workflow in the log");
                self.get(org, id)
            }
        }
    }
}

/// The known workflows; clones share state.
#[derive(Clone, Default)]
struct Workflows(Arc<RwLock<HashMap<OrgId, HashMap<String, Entry>>>>);

impl Workflows {
    /// Records one saved version; one that is older than the known state changes nothing.
    fn note(&self, recorded: &Recorded) -> Option<Summary> {
        let Event::WorkflowSaved(saved) = &recorded.event else {
            return None;
        };
        let (org, id) = (&recorded.stream.org, &saved.workflow_id);
        self.learn(org, id, Summary::from(saved), recorded.sequence);
        Some(Summary::from(saved))
    }

    fn learn(&self, org: &OrgId, id: &WorkflowId, summary: Summary, sequence: u64) {
        let mut workflows = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let of_org = workflows.entry(org.clone()).or_default();
        let known = of_org.get(id.as_str()).map_or(0, |entry| entry.sequence);
        if sequence > known {
            of_org.insert(id.as_str().to_owned(), Entry { summary, sequence });
        }
    }

    fn count(&self, org: &OrgId) -> usize {
        let workflows = self.0.read().unwrap_or_else(PoisonError::into_inner);
        workflows.get(org).map_or(0, HashMap::len)
    }

    fn get(&self, org: &OrgId, id: &str) -> Option<Summary> {
        let workflows = self.0.read().unwrap_or_else(PoisonError::into_inner);
        workflows.get(org)?.get(id).map(|entry| entry.summary)
    }
}
