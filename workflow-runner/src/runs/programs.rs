//! Definitions by workflow and version, read from the log when first needed.

use std::sync::Arc;

use event_log::{EventLog, ReadError};
use schemas::workflow::{Definition, Saved};
use schemas::{AggregateType, Event, OrgId, Recorded, StreamId, WorkflowId};

use super::cache::Cache;
use super::evaluator::{Evaluator, Failed};
use super::program::Program;
use super::steps::encoded_len;

/// A definition of more bytes than this is compiled on a separate thread.
const TRIFLE: usize = 4 * 1024;

type Key = (OrgId, WorkflowId, u32);

/// Recently used definitions. A version never changes.
pub(super) struct Programs {
    log: EventLog,
    evaluator: Evaluator,
    held: Cache<Key, Program>,
}

/// Why there is no definition to follow.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProgramError {
    #[error("version {0} of the workflow was not found in the log")]
    Missing(u32),
    #[error("the workflow's definition cannot be read: {0}")]
    Unreadable(String),
    /// Another version of this program may read it.
    #[error("this version cannot read the workflow: {0}")]
    Undecodable(String),
    #[error("the log does not answer: {0}")]
    Unavailable(String),
}

impl From<ReadError> for ProgramError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Unavailable(reason) => Self::Unavailable(reason),
            ReadError::Undecodable { reason, .. } => Self::Undecodable(reason),
        }
    }
}

impl From<Failed> for ProgramError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Slow(_) => Self::Unavailable(failed.to_string()),
            Failed::Broken => Self::Unreadable(failed.to_string()),
        }
    }
}

impl Programs {
    /// Holds compiled definitions up to `room` bytes.
    pub(super) fn new(log: EventLog, evaluator: Evaluator, room: usize) -> Self {
        Self {
            log,
            evaluator,
            held: Cache::new("definitions", room),
        }
    }

    /// The definition that a run follows.
    pub(super) async fn get(
        &self,
        org: &OrgId,
        workflow: &WorkflowId,
        version: u32,
    ) -> Result<Arc<Program>, ProgramError> {
        let key = (org.clone(), workflow.clone(), version);
        if let Some(held) = self.held.get(&key) {
            return Ok(held);
        }
        let definition = self.read(org, workflow, version).await?;
        let bytes = encoded_len(&definition);
        let program = if bytes > TRIFLE {
            let compile = move |_: &_| Program::new(definition);
            self.evaluator.run_apart(org, compile).await?
        } else {
            Program::new(definition)
        };
        // Apart from the templates, the parsed definition is about as large again as its JSON.
        let bytes = 2 * bytes + program.bytes();
        Ok(self.held.put(org, key, program, bytes))
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
