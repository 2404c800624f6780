//! Work that the dispatcher does every second, and at its end.

use std::time::Duration;

use tokio::time::sleep;

use super::checkpoint::Checkpoint;
use super::dispatcher::{CROWD, Dispatcher, State};
use super::open_records::{OpenRecords, RECENT};
use super::tasks::Tasks;

/// Timeout for attempts in progress at shutdown.
const LAST_ATTEMPTS: Duration = Duration::from_secs(5);

impl Dispatcher {
    /// Saves the partitions' checkpoints, and updates the metrics.
    pub(super) fn save_and_measure(&mut self) {
        self.measure();
        if !self.saving.is_under_way() {
            self.saving.begin(self.checkpoints_now());
        }
    }

    fn checkpoints_now(&self) -> Vec<(u16, Checkpoint)> {
        let served = self.state.partitions.served().iter();
        let now = served.map(|(partition, retries)| {
            (*partition, retries.still_open(self.checkpoint(*partition)))
        });
        now.collect()
    }

    fn checkpoint(&self, partition: u16) -> Checkpoint {
        let scheduler = &self.state.scheduler;
        let giving_up = self.state.giving_up.values();
        let giving_up = giving_up.filter(|of| of.partition == partition);
        let giving_up = giving_up.flat_map(|of| of.records.iter().copied());
        let open = scheduler.open_records(partition).chain(giving_up);
        Checkpoint {
            through: self.cursor,
            retries: OpenRecords::new(open.collect(), self.state.attempts_through),
            requests_through: self.directory.through(),
            queues: scheduler.checkpoints(partition),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    fn measure(&mut self) {
        let (mut retrying, mut waiting) = (0, 0);
        for queue in self.state.scheduler.queues() {
            retrying += queue.retrying();
            waiting += queue.waiting();
        }
        self.state.scheduler.crowded = retrying >= CROWD;
        let feed = self.sender.feed.name();
        metrics::gauge!("waypost_webhook_retrying", "feed" => feed).set(retrying as f64);
        metrics::gauge!("waypost_webhook_waiting", "feed" => feed).set(waiting as f64);
        metrics::gauge!("waypost_webhook_sending", "feed" => feed).set(self.state.sending as f64);
        let filters = self.directory.wishes_bytes();
        metrics::gauge!("waypost_webhook_wishes_bytes", "feed" => feed).set(filters as f64);
    }

    /// Lets attempts in progress end, and saves the last checkpoints.
    pub(super) async fn finish(mut self) {
        let ended = Tasks::ended(self.tasks.running());
        tokio::pin!(ended);
        let timeout = sleep(LAST_ATTEMPTS);
        tokio::pin!(timeout);
        loop {
            tokio::select! {
                biased;
                Some(report) = self.reports.recv() => self.take_reports(report),
                () = &mut ended => break,
                () = &mut timeout => {
                    tracing::info!(
                        "Delivery attempts in progress were cut off; they will be repeated"
                    );
                    break;
                }
            }
        }
        self.saving.finish(self.checkpoints_now()).await;
    }
}

impl State {
    /// Takes the end of the deliveries' log. A process that takes over reads everything after the
    /// last attempt that was known here, so a process with few deliveries must not lag behind the
    /// others. Its own attempts before the previously queried end have been reported since.
    pub(super) fn take_end(&mut self, end: u64) {
        let before = std::mem::replace(&mut self.attempts_end, end);
        // Each move is saved for every partition.
        if before >= self.attempts_through + RECENT / 2 {
            self.attempts_through = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_few_deliveries_trails_the_end_of_the_log_by_one_query() {
        let mut state = State::default();
        state.attempts_through = 100;
        let mut known_after = |end| {
            state.take_end(end);
            state.attempts_through
        };
        assert_eq!(known_after(RECENT), 100);
        assert_eq!(known_after(RECENT + 9), RECENT);
        assert_eq!(known_after(RECENT * 2), RECENT, "it has hardly moved");
    }
}
