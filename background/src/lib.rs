//! Threads for long work, which yield to everything else.
//!
//! A request that takes a millisecond should not wait while a PDF is drawn or a million events are
//! read. On one runtime it would, because tasks take turns in the order in which they arrive.
//! Between threads the system decides, and gives those of a lower priority what the others leave.

use std::sync::LazyLock;
use std::thread::{available_parallelism, sleep};
use std::time::{Duration, Instant};

use rustix::process::setpriority_process;
use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// About a tenth of a processor's time while other threads want all of it.
const NICENESS: i32 = 10;

/// Work that took this many times its processor time had to share the processor.
const SHARED: f64 = 1.5;

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

/// Number of processors that this process may use; 1 if that is unknown.
pub fn processors() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// Computes on a thread of lower priority. The caller has to bound how many of these run at once.
pub fn compute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    handle().spawn_blocking(work)
}

/// Computes like [`compute`], and holds `place` longer than that takes: if the work had to share
/// its processor, for as long again. A thread of lower priority still takes some of the processor
/// and cache that others need. A caller with endless work should leave them half the time.
///
/// The result is sent before the rest; the receiver gets an error if the work panics.
pub fn compute_and_rest<T, P>(
    work: impl FnOnce() -> T + Send + 'static,
    place: P,
) -> oneshot::Receiver<T>
where
    T: Send + 'static,
    P: Send + 'static,
{
    let (tell, told) = oneshot::channel();
    let work = move || {
        let place = place;
        let (begun, used) = (Instant::now(), processor_time());
        let done = work();
        let (took, used) = (begun.elapsed(), processor_time().saturating_sub(used));
        // The caller may be gone; the rest is due anyway.
        let _ = tell.send(done);
        if took > used.mul_f64(SHARED) {
            sleep(took);
        }
        drop(place);
    };
    drop(handle().spawn_blocking(work));
    told
}

/// The processor time used by this thread.
fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Spawns a task on threads of lower priority.
pub fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    handle().spawn(task)
}

/// The runtime of these threads, or the caller's runtime if the system provides no threads.
///
/// # Panics
///
/// In that case, if called outside of a runtime.
pub fn handle() -> Handle {
    let threads = THREADS.as_ref().map(Runtime::handle);
    threads.cloned().unwrap_or_else(Handle::current)
}

/// Linux keeps niceness per thread. If it is refused, long work competes like any other.
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
    async fn a_place_is_held_beyond_work_that_had_to_share() {
        let took = Duration::from_millis(50);
        for (work, rests) in [
            // Work that sleeps uses no processor time, like work that does not get any.
            (
                Box::new(move || sleep(took)) as Box<dyn FnOnce() + Send>,
                true,
            ),
            (Box::new(|| ()), false),
        ] {
            let (place, mut left) = oneshot::channel::<()>();
            compute_and_rest(work, place).await.unwrap();
            let told = Instant::now();
            assert!(!rests || left.try_recv() == Err(oneshot::error::TryRecvError::Empty));
            assert!(left.await.is_err());
            assert!(!rests || told.elapsed() > took / 2);
        }
    }

    #[tokio::test]
    async fn long_work_runs_at_a_lower_priority_and_its_caller_does_not() {
        let niceness = || getpriority_process(Some(gettid())).unwrap();
        let computed = compute(niceness).await.unwrap();
        let run = spawn(async move { niceness() }).await.unwrap();
        let lower = (niceness() + NICENESS).min(19);
        assert_eq!((computed, run), (lower, lower));
    }
}
