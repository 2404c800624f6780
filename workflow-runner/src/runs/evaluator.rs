//! Where templates and expressions are evaluated: outside the threads that serve everybody, if the
//! work is more than trivial.
//!
//! An evaluation starts in place, with a budget for a fraction of a millisecond. One that needs
//! more starts over on a separate thread, with the whole budget of an evaluation; these threads are
//! few, and organizations share them. Evaluating changes nothing, so starting over is safe.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use domain::template::Meter;
use schemas::OrgId;
use service::Shares;
use tokio::time::timeout;

use super::measure;
use super::settings::TemplateSettings;

/// The work that is done in place.
const TRIFLE: u64 = 32 * 1024;

/// How often an evaluation that takes too long is tried.
const TRIES: u32 = 3;

/// Evaluates for all organizations. Clones are the same one.
#[derive(Clone, Debug)]
pub(super) struct Evaluator {
    threads: Shares<OrgId>,
    work: u64,
    timeout: Duration,
}

/// Why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failed {
    #[error(
        "took longer than {} s: use shorter lists or texts, or split the work into several steps",
        .0.as_secs()
    )]
    Slow(Duration),
    #[error("evaluating an expression failed unexpectedly; write it differently")]
    Broken,
}

impl Evaluator {
    pub(super) fn new(settings: &TemplateSettings) -> Self {
        Self {
            threads: Shares::new(settings.threads()),
            work: settings.work,
            timeout: settings.timeout,
        }
    }

    /// Evaluates within the budget of one evaluation.
    pub(super) async fn run<T, F>(&self, org: &OrgId, evaluate: F) -> Result<T, Failed>
    where
        T: Send + 'static,
        F: Fn(&Meter) -> T + Send + Sync + 'static,
    {
        let trifle = Meter::new(TRIFLE.min(self.work));
        let done = sheltered(|| evaluate(&trifle));
        if !trifle.is_exhausted() {
            return done;
        }
        let evaluate = Arc::new(evaluate);
        let mut tries = 1;
        loop {
            let evaluate = Arc::clone(&evaluate);
            let done = self.run_apart(org, move |meter| evaluate(meter)).await;
            // The budget runs out within the time, unless the machine stalled meanwhile.
            if tries == TRIES || !matches!(done, Err(Failed::Slow(_))) {
                return done;
            }
            tries += 1;
        }
    }

    /// As [`Self::run`], for evaluations known to be more than trivial.
    pub(super) async fn run_apart<T, F>(&self, org: &OrgId, evaluate: F) -> Result<T, Failed>
    where
        T: Send + 'static,
        F: FnOnce(&Meter) -> T + Send + 'static,
    {
        let thread = self.threads.enter(org.clone()).await;
        let meter = Meter::new(self.work);
        let paying = meter.clone();
        let evaluating = background::compute(move || {
            // Given back when the thread is free, not when the caller stops waiting.
            let _thread = thread;
            sheltered(|| evaluate(&paying))
        });
        let done = timeout(self.timeout, evaluating).await;
        measure::evaluated(meter.spent());
        match done {
            Ok(Ok(done)) => {
                if meter.is_exhausted() {
                    measure::unevaluated("work");
                }
                done
            }
            Ok(Err(_)) => Err(Failed::Broken),
            Err(_) => {
                meter.stop();
                measure::unevaluated("time");
                Err(Failed::Slow(self.timeout))
            }
        }
    }
}

/// Contains the panic of an expression, so that nothing else fails with it.
fn sheltered<T>(evaluate: impl FnOnce() -> T) -> Result<T, Failed> {
    catch_unwind(AssertUnwindSafe(evaluate)).map_err(|_| {
        measure::unevaluated("broken");
        Failed::Broken
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    fn evaluator(timeout: Duration) -> Evaluator {
        Evaluator::new(&TemplateSettings {
            threads: Some(1),
            timeout,
            ..TemplateSettings::default()
        })
    }

    #[tokio::test]
    async fn a_trifle_is_done_on_the_spot_and_more_elsewhere() {
        let (evaluator, here) = (evaluator(Duration::from_mins(1)), thread::current().id());
        let org = OrgId::from("o");
        let where_is = |work: u64| {
            move |meter: &Meter| {
                meter.pay(work);
                thread::current().id()
            }
        };
        assert_eq!(evaluator.run(&org, where_is(10)).await, Ok(here));
        assert_ne!(evaluator.run(&org, where_is(TRIFLE + 1)).await, Ok(here));
    }

    #[tokio::test]
    async fn what_takes_too_long_is_stopped() {
        let (evaluator, (told, tell)) = (evaluator(Duration::from_millis(1)), mpsc::channel());
        let tell = std::sync::Mutex::new(tell);
        let endless = move |meter: &Meter| {
            while meter.pay(0) {
                thread::yield_now();
            }
            let _ = told.send(());
        };
        let done = evaluator.run_apart(&OrgId::from("o"), endless).await;
        assert!(matches!(done, Err(Failed::Slow(_))));
        let ended = background::compute(move || tell.lock().is_ok_and(|tell| tell.recv().is_ok()));
        assert!(ended.await.unwrap());
    }

    #[tokio::test]
    async fn what_breaks_down_takes_nothing_along() {
        let evaluator = evaluator(Duration::from_mins(1));
        let broken = |_: &Meter| -> u8 { panic!("an expression's fault") };
        let org = OrgId::from("o");
        assert_eq!(evaluator.run(&org, broken).await, Err(Failed::Broken));
        assert_eq!(evaluator.run_apart(&org, broken).await, Err(Failed::Broken));
        assert_eq!(evaluator.run_apart(&org, |_| 7).await, Ok(7));
    }
}
