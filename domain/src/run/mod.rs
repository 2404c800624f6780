//! Runs: the fold of a run's own events, and what happens next.
//!
//! Everything about a run stands in its events. [`Run`] is their fold, [`next`] says from it what
//! is to be done, and doing it gives further events. Whoever folds the same events decides the
//! same, so that a run goes on wherever its last owner stopped.
//!
//! A step begins once: at its first predecessor's success (`any`), or when no predecessor that has
//! not succeeded can still come about (`all`). A step that has failed for good fails its run, and
//! so does the end of the workflow's `timeoutSeconds`, counted from the run's start.

mod cancel;
mod engine;
mod graph;
mod retry;
mod state;

pub use cancel::{NotCancellable, cancel};
pub use engine::{Attempt, End, Next, Waiting, Work, next};
pub use graph::Graph;
pub use retry::{delay, retry_at};
pub use state::{NotARun, Run, State, Step, StepState};

#[cfg(test)]
mod tests;
