//! Runs: the fold of a run's own events, and what happens next.
//!
//! Everything about a run stands in its events. [`Run`] is their fold, [`next`] says from it what
//! is to be done, and doing it gives further events. Whoever folds the same events decides the
//! same, so that a run goes on wherever its last owner stopped.
//!
//! A success names the way that the run takes from there. A step begins once: when the first way
//! to it is taken (`any`), or when no way to it that has not been taken can still be (`all`). What
//! no way leads to any more is skipped. A step that has failed for good fails its run, and so does
//! the end of the workflow's `timeoutSeconds`, counted from the run's start. A DELAY's time and a
//! `WAIT_FOR_EVENT`'s timeout follow from the moment at which their attempt began.
//!
//! A run that has failed or was called off may be retried as a whole: then everything that had
//! begun and has not succeeded begins anew, and time counts anew.

mod again;
mod cancel;
mod engine;
mod graph;
mod retry;
mod state;
mod ways;

pub use again::{NotRetryable, retry};
pub use cancel::{NotCancellable, cancel};
pub use engine::{Attempt, End, Next, Waiting, Work, end_of_wait, next};
pub use graph::Graph;
pub use retry::{delay, retry_at};
pub use state::{NotARun, Run, State, Step, StepState};
pub use ways::{Leading, Reached, Ways};

#[cfg(test)]
mod tests;
