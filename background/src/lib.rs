//! Threads for long work, which give way to everything else.
//!
//! A request that takes a millisecond should not wait while a PDF is drawn or somebody reads a
//! million events. Among the tasks of one runtime it would: these take turns in the order in which
//! they came. Between threads the system decides, and gives those of a lower priority what the
//! others leave.

use std::sync::LazyLock;
use std::thread::available_parallelism;

use rustix::process::setpriority_process;
use rustix::thread::gettid;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

/// About a tenth of a processor's time while other threads want all of it.
const NICENESS: i32 = 10;

static THREADS: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    let mut threads = Builder::new_multi_thread();
    threads
        .worker_threads(processors())
        .thread_name("background")
        .on_thread_start(give_way)
        .enable_all()
        .build()
        .inspect_err(|error| tracing::warn!(%error, "long work competes with requests"))
        .ok()
});

/// How many processors this process may use; 1 where that cannot be told.
pub fn processors() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// Computes on a thread of lower priority. How many of these are under way at once is the
/// caller's to bound.
pub fn compute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    handle().spawn_blocking(work)
}

/// Runs a task on threads of lower priority.
pub fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    handle().spawn(task)
}

/// The runtime of these threads; the one that asks, where the system gives no threads.
///
/// # Panics
///
/// Outside of a runtime, in that case.
pub fn handle() -> Handle {
    let threads = THREADS.as_ref().map(Runtime::handle);
    threads.cloned().unwrap_or_else(Handle::current)
}

/// Linux counts niceness for each thread. Where it is refused, long work competes as any other.
fn give_way() {
    if let Err(error) = setpriority_process(Some(gettid()), NICENESS) {
        tracing::debug!(%error, "a thread keeps its priority");
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    #[tokio::test]
    async fn long_work_gives_way_and_whoever_asked_for_it_does_not() {
        let niceness = || getpriority_process(Some(gettid())).unwrap();
        let computed = compute(niceness).await.unwrap();
        let run = spawn(async move { niceness() }).await.unwrap();
        let lower = (niceness() + NICENESS).min(19);
        assert_eq!((computed, run), (lower, lower));
    }
}
