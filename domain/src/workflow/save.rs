//! Saving a definition.

use schemas::workflow::{Definition, Saved};
use schemas::{Event, WorkflowId};

use crate::Revision;

/// The result of saving.
#[derive(Clone, Debug, PartialEq)]
pub enum Saving {
    /// A new version.
    Saved(Saved),
    /// The definition is that of this version already: nothing is written, so that saving can be
    /// repeated.
    Unchanged {
        /// The current version.
        version: u32,
    },
}

/// Saves a definition over the workflow's last event.
pub fn save(workflow_id: WorkflowId, definition: Definition, last: Option<&Event>) -> Saving {
    match saved(last) {
        Some(old) if old.definition == definition => Saving::Unchanged {
            version: old.version,
        },
        old => Saving::Saved(Saved {
            workflow_id,
            version: old.map_or(1, |old| old.version + 1),
            definition,
        }),
    }
}

/// The revision of a workflow after its last event; `None` if there is no workflow.
pub fn revision(last: Option<&Event>) -> Option<Revision> {
    saved(last).map(|saved| Revision::of_workflow(saved.version))
}

fn saved(last: Option<&Event>) -> Option<&Saved> {
    match last {
        Some(Event::WorkflowSaved(saved)) => Some(saved),
        _ => None,
    }
}
