//! Saving a definition.

use schemas::workflow::{Definition, Saved};
use schemas::{Event, WorkflowId};

use crate::Revision;

/// What saving leads to.
#[derive(Clone, Debug, PartialEq)]
pub enum Saving {
    /// A new version.
    Saved(Saved),
    /// The definition is that of this version already: nothing is written, so that saving can be
    /// repeated.
    Unchanged {
        /// The version that stands.
        version: u32,
    },
}

/// Saves a definition over the workflow's last event.
pub fn save(workflow_id: WorkflowId, definition: Definition, last: Option<&Event>) -> Saving {
    match standing(last) {
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

/// Which version of a workflow stands after its last event; `None` where there is none.
pub fn revision(last: Option<&Event>) -> Option<Revision> {
    standing(last).map(|saved| Revision::of_workflow(saved.version))
}

fn standing(last: Option<&Event>) -> Option<&Saved> {
    match last {
        Some(Event::WorkflowSaved(saved)) => Some(saved),
        _ => None,
    }
}
