//! Retrying a run as a whole.

use schemas::{Event, run::Retried};

use super::{Run, State};

/// Why a run cannot be retried: its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run is {}; only a FAILED or CANCELLED run can be retried", .0.name())]
pub struct NotRetryable(pub State);

/// Continues a run that has failed or was cancelled.
pub fn retry(run: &Run) -> Result<Event, NotRetryable> {
    match run.state {
        State::Failed | State::Cancelled => Ok(Event::RunRetried(Retried {
            run_id: run.id.clone(),
            workflow_id: run.workflow_id.clone(),
        })),
        state => Err(NotRetryable(state)),
    }
}
