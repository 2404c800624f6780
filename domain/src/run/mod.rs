//! Runs: the fold of a run's own events, and what happens next.
//!
//! Everything about a run is in its events. [`Run`] is their fold, [`next`] derives from it what
//! to do, and doing it adds further events. The same events always lead to the same decision, so a
//! run continues wherever its last owner stopped.
//!
//! A success names the way that the run takes from there. A step begins once: when the first way
//! to it is taken (`any`), or when none of the other ways to it can still be taken (`all`). A step
//! that no way leads to any more is skipped. A step that has failed permanently fails its run, and
//! so does the end of the workflow's `timeoutSeconds`, counted from the run's start. A DELAY's time
//! and a `WAIT_FOR_EVENT`'s timeout are counted from the start of their attempt.
//!
//! A run that has failed or was cancelled may be retried as a whole: then everything that had
//! begun and has not succeeded restarts, and so does the time.

mod again;
mod cancel;
mod engine;
mod graph;
mod retry;
mod size;
mod state;
mod ways;

pub use again::{NotRetryable, retry};
pub use cancel::{NotCancellable, cancel};
pub use engine::{Attempt, End, Next, Waiting, Work, end_of_wait, next};
pub use graph::Graph;
pub use retry::{delay, retry_at};
pub use size::{MAX_DATA, TooLarge, encoded_len};
pub use state::{NotARun, Run, State, Step, StepState};
pub use ways::{Leading, Reached, Ways};

#[cfg(test)]
mod tests;
