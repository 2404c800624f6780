//! Definitions by workflow and version, read from the log when first needed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use event_log::{EventLog, ReadError};
use schemas::workflow::{Definition, Saved};
use schemas::{AggregateType, Event, OrgId, Recorded, StreamId, WorkflowId};

use super::program::Program;

/// Definitions held in memory at most.
const HELD: usize = 2_000;

type Key = (OrgId, WorkflowId, u32);

/// The definitions that were used lately. A version never changes.
pub(super) struct Programs {
    log: EventLog,
    held: Mutex<HashMap<Key, Arc<Program>>>,
}

/// Why there is no definition to follow.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProgramError {
    #[error("version {0} of the workflow is not in the log")]
    Missing(u32),
    #[error("the workflow's definition cannot be read: {0}")]
    Unreadable(String),
    #[error("the log does not answer: {0}")]
    Unavailable(String),
}

impl From<ReadError> for ProgramError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Unavailable(reason) => Self::Unavailable(reason),
            ReadError::Undecodable { reason, .. } => Self::Unreadable(reason),
        }
    }
}

impl Programs {
    pub(super) fn new(log: EventLog) -> Self {
        let held = Mutex::default();
        Self { log, held }
    }

    /// The definition that a run follows.
    pub(super) async fn get(
        &self,
        org: &OrgId,
        workflow: &WorkflowId,
        version: u32,
    ) -> Result<Arc<Program>, ProgramError> {
        let key = (org.clone(), workflow.clone(), version);
        if let Some(held) = self.held().get(&key) {
            return Ok(Arc::clone(held));
        }
        let definition = self.read(org, workflow, version).await?;
        let program = Arc::new(Program::new(definition));
        let mut held = self.held();
        if held.len() >= HELD {
            held.clear();
        }
        Ok(Arc::clone(held.entry(key).or_insert(program)))
    }

    async fn read(
        &self,
        org: &OrgId,
        workflow: &WorkflowId,
        version: u32,
    ) -> Result<Definition, ProgramError> {
        let stream = StreamId::new(org, AggregateType::Workflow, workflow.as_str());
        // Most runs follow the newest version; a workflow that was saved often has many others.
        if let Ok(Some(last)) = self.log.last(&stream).await
            && let Some(definition) = definition(last, version)
        {
            return Ok(definition);
        }
        let events = self.log.load(&stream).await?;
        let mut found = events
            .into_iter()
            .filter_map(|event| definition(event, version));
        found.next().ok_or(ProgramError::Missing(version))
    }

    fn held(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Arc<Program>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn definition(recorded: Recorded, wanted: u32) -> Option<Definition> {
    match recorded.event {
        Event::WorkflowSaved(Saved {
            version,
            definition,
            ..
        }) if version == wanted => Some(definition),
        _ => None,
    }
}
