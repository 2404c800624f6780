//! Saving a definition.

use schemas::workflow::{Definition, Saved};
use schemas::{Event, WorkflowId};

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
    let old = match last {
        Some(Event::WorkflowSaved(old)) => Some(old),
        _ => None,
    };
    match old {
        Some(old) if old.definition == definition => Saving::Unchanged {
            version: old.version,
        },
        _ => Saving::Saved(Saved {
            workflow_id,
            version: old.map_or(1, |old| old.version + 1),
            definition,
        }),
    }
}
