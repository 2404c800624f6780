//! How far a log has come, for feeds that wait for a position.

use std::time::Duration;

use event_log::ReadError;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep_until, timeout};

/// How long after a question the next one is asked.
const AGAIN: Duration = Duration::from_millis(100);
/// How long an answer is waited for. The leader that was asked may have just been lost.
const SILENCE: Duration = Duration::from_secs(2);

/// The end of one log as far as it is known. One of those who wait asks for all of them.
#[derive(Debug)]
pub(super) struct End {
    known: watch::Sender<u64>,
    /// When it was asked for last. Who holds this lock asks.
    asked: Mutex<Option<Instant>>,
}

impl Default for End {
    fn default() -> Self {
        Self {
            known: watch::Sender::new(0),
            asked: Mutex::default(),
        }
    }
}

impl End {
    /// Waits until the log has reached a sequence. A position that is known to be reached stays
    /// so, and is not asked about.
    pub(super) async fn reached<F>(&self, sequence: u64, ask: impl Fn() -> F)
    where
        F: Future<Output = Result<u64, ReadError>>,
    {
        let mut known = self.known.subscribe();
        let others_found = async {
            // The sender lives as long as this future borrows it.
            drop(known.wait_for(|end| *end >= sequence).await);
        };
        tokio::select! {
            () = others_found => {}
            () = self.ask_until(sequence, ask) => {}
        }
    }

    /// Waits until nobody else asks, then asks until the log has reached a sequence.
    async fn ask_until<F>(&self, sequence: u64, ask: impl Fn() -> F)
    where
        F: Future<Output = Result<u64, ReadError>>,
    {
        let mut asked = self.asked.lock().await;
        while *self.known.borrow() < sequence {
            if let Some(asked) = *asked {
                sleep_until(asked + AGAIN).await;
            }
            *asked = Some(Instant::now());
            if let Ok(Ok(end)) = timeout(SILENCE, ask()).await {
                self.known.send_if_modified(|known| {
                    let is_news = end > *known;
                    *known = end.max(*known);
                    is_news
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Ready, ready};
    use std::sync::atomic::{AtomicU64, Ordering};

    use futures::future::{Either, join_all, pending};

    use super::*;

    const WAIT: Duration = Duration::from_secs(5);

    /// A log, and how often it was asked for its end.
    #[derive(Default)]
    struct TestLog {
        end: AtomicU64,
        questions: AtomicU64,
    }

    impl TestLog {
        fn answer(&self) -> Ready<Result<u64, ReadError>> {
            self.questions.fetch_add(1, Ordering::Relaxed);
            ready(Ok(self.end.load(Ordering::Relaxed)))
        }

        fn questions(&self) -> u64 {
            self.questions.load(Ordering::Relaxed)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn all_who_wait_share_one_question_at_a_time() {
        let (end, log) = (End::default(), TestLog::default());
        let ask = || log.answer();
        let waits = (0..32).map(|_| timeout(WAIT, end.reached(1, ask)));
        let waited = join_all(waits).await;
        assert!(waited.iter().all(Result::is_err));
        assert!((40..=51).contains(&log.questions()), "{}", log.questions());
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_gives_way_to_the_next_when_it_is_gone() {
        let (end, log) = (End::default(), TestLog::default());
        let first = timeout(WAIT / 2, end.reached(9, || log.answer()));
        let second = timeout(WAIT, end.reached(5, || log.answer()));
        let grow = async {
            tokio::time::sleep(WAIT * 3 / 4).await;
            log.end.store(5, Ordering::Relaxed);
        };
        let (first, second, ()) = tokio::join!(first, second, grow);
        assert!(first.is_err());
        assert!(second.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_is_never_answered_is_asked_again() {
        let (end, log) = (End::default(), TestLog::default());
        log.end.store(5, Ordering::Relaxed);
        let ask = || {
            let answer = log.answer();
            match log.questions() {
                1 => Either::Left(pending()),
                _ => Either::Right(answer),
            }
        };
        let waited = timeout(WAIT, end.reached(5, ask)).await;
        assert!(waited.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn each_goes_on_as_soon_as_its_own_position_is_reached() {
        let (end, log) = (End::default(), TestLog::default());
        log.end.store(5, Ordering::Relaxed);
        let begun = Instant::now();
        let far = timeout(WAIT, end.reached(9, || log.answer()));
        let near = async {
            end.reached(5, || log.answer()).await;
            begun.elapsed()
        };
        let (far, near) = tokio::join!(far, near);
        assert!(far.is_err());
        assert!(near <= AGAIN, "{near:?}");
        // What is known to be reached is not asked about.
        let asked = log.questions();
        end.reached(3, || log.answer()).await;
        assert_eq!(log.questions(), asked);
    }
}
