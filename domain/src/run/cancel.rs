//! Cancelling a run.

use schemas::{Event, run::Cancelled};

use super::{Run, State};

/// Why a run cannot be cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCancellable {
    /// It succeeded.
    #[error("the run has already succeeded and cannot be cancelled")]
    Succeeded,
    /// It failed.
    #[error("the run has already failed and cannot be cancelled")]
    Failed,
}

/// Cancels a run; no event if it already is.
pub fn cancel(run: &Run) -> Result<Option<Event>, NotCancellable> {
    match run.state {
        State::Succeeded => Err(NotCancellable::Succeeded),
        State::Failed => Err(NotCancellable::Failed),
        State::Cancelled => Ok(None),
        State::Queued | State::Running | State::Waiting => {
            Ok(Some(Event::RunCancelled(Cancelled {
                run_id: run.id.clone(),
                workflow_id: run.workflow_id.clone(),
            })))
        }
    }
}
