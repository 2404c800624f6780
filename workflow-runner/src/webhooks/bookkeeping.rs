//! What the dispatcher does every second, and at its end.

use std::time::Duration;

use tokio::time::sleep;

use super::checkpoint::Checkpoint;
use super::dispatcher::{CROWD, Dispatcher};
use super::tasks::Tasks;

/// How long attempts under way may take to end at shutdown.
const LAST_ATTEMPTS: Duration = Duration::from_secs(5);

impl Dispatcher {
    /// Writes how far each partition has come, and tells metrics how much there is to do.
    pub(super) fn keep_books(&mut self) {
        self.measure();
        if !self.saving.is_under_way() {
            self.saving.begin(self.checkpoints_now());
        }
    }

    fn checkpoints_now(&self) -> Vec<(u16, Checkpoint)> {
        let partitions = &self.state.partitions;
        let now = partitions.served().filter_map(|partition| {
            let open = partitions.still_open(partition, self.checkpoint(partition))?;
            Some((partition, open))
        });
        now.collect()
    }

    fn checkpoint(&self, partition: u16) -> Checkpoint {
        let (attempts, requests) = (self.state.attempts_through, self.directory.through());
        let scheduler = &self.state.scheduler;
        let mut checkpoint = scheduler.checkpoint(partition, self.cursor, attempts, requests);
        let giving_up = self.state.giving_up.values();
        for open in giving_up.filter(|of| of.partition == partition) {
            checkpoint.attempts_after = checkpoint.attempts_after.min(open.oldest - 1);
        }
        checkpoint
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

    /// Lets attempts under way end, and writes how far all has come.
    pub(super) async fn finish(mut self) {
        let ended = Tasks::ended(self.tasks.running());
        tokio::pin!(ended);
        let patience = sleep(LAST_ATTEMPTS);
        tokio::pin!(patience);
        loop {
            tokio::select! {
                biased;
                Some(report) = self.reports.recv() => self.take_reports(report),
                () = &mut ended => break,
                () = &mut patience => {
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
