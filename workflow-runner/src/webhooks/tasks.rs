//! Tasks spawned by the dispatcher, and their reports to it.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use event_log::EventLog;
use futures::StreamExt as _;
use futures::stream;
use schemas::{Log, OrgId, WebhookId};
use service::Shares;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::checkpoint::Checkpoint;
use super::directory::Endpoint;
use super::feed::Feed;
use super::open_records::OpenRecords;
use super::replay::{Replayed, Replayer};
use super::scheduler::QueueKey;
use super::sender::{Job, Progress, Sender};
use super::takeover::{TakenOver, Waiting};
use super::work::Gap;
use super::{refill, takeover};
use crate::checkpoints::Checkpoints;
use crate::leases::{LeaseGuard, Round, partition_of};

/// Number of refills that read the log at the same time; organizations share them.
const REFILLS: usize = 8;
const REFILL_AGAIN: Duration = Duration::from_millis(500);
/// Number of deliveries of one endpoint that are ended at the same time.
const GIVING_UP: usize = 64;

/// A report to the dispatcher.
#[derive(Debug)]
pub(super) enum Report {
    /// Progress of an attempt to deliver the event of this sequence.
    Progress(QueueKey, u64, Progress),
    /// A queue's wanted events were read from the log, or could not be.
    Refilled(QueueKey, Option<refill::Found>),
    /// An endpoint's requests were continued, or could not be.
    Replayed(QueueKey, Option<Replayed>),
    /// The checkpoints of a round were read.
    TakenOver(Round, TakenOver),
    /// The deliveries that wait for a retry were read for a round.
    RetriesLoaded(Round, Vec<Waiting>),
    /// Deliveries of a removed queue were ended.
    GaveUp(u64),
    /// The end of the deliveries' log.
    AttemptsEnd(u64),
}

/// The dispatcher's tasks; they end with it.
pub(super) struct Tasks {
    tell: mpsc::UnboundedSender<Report>,
    running: TaskTracker,
    cut: CancellationToken,
    refills: Shares<OrgId>,
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.cut.cancel();
    }
}

impl Tasks {
    /// Creates the tasks and the receiver of their reports.
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<Report>) {
        // Unbounded: each task reports a few times, and the number of running tasks is bounded.
        let (tell, reports) = mpsc::unbounded_channel();
        let tasks = Self {
            tell,
            running: TaskTracker::new(),
            cut: CancellationToken::new(),
            refills: Shares::new(REFILLS),
        };
        (tasks, reports)
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let cut = self.cut.clone();
        self.running.spawn(async move {
            cut.run_until_cancelled_owned(task).await;
        });
    }

    /// Waits until all have ended; no more may be started.
    pub(super) async fn ended(running: TaskTracker) {
        running.close();
        running.wait().await;
    }

    /// The running tasks.
    pub(super) fn running(&self) -> TaskTracker {
        self.running.clone()
    }

    pub(super) fn deliver(
        &self,
        sender: &Arc<Sender>,
        key: QueueKey,
        job: Job,
        guard: Option<LeaseGuard>,
    ) {
        let (sender, tell) = (sender.clone(), self.tell.clone());
        let sequence = job.work.sequence;
        self.spawn(async move {
            let tell = |progress| report(&tell, Report::Progress(key.clone(), sequence, progress));
            sender.deliver(job, tell).await;
            drop(guard);
        });
    }

    pub(super) fn refill(
        &self,
        reader: refill::Reader,
        key: QueueKey,
        endpoint: Arc<Endpoint>,
        gap: Gap,
        head_before: u64,
    ) {
        let (tell, turns) = (self.tell.clone(), self.refills.clone());
        self.spawn(async move {
            let turn = turns.enter(endpoint.org.clone()).await;
            let found = refill::read(&reader, &endpoint, gap, head_before).await;
            drop(turn);
            if let Err(error) = &found {
                tracing::warn!(webhook = %endpoint.id, %error, "A webhook's backlog waits for the log");
                sleep(REFILL_AGAIN).await;
            }
            report(&tell, Report::Refilled(key, found.ok()));
        });
    }

    /// Continues with the requests of an endpoint's owner.
    pub(super) fn replay(&self, replayer: Replayer, key: QueueKey, guard: Option<LeaseGuard>) {
        let (tell, turns) = (self.tell.clone(), self.refills.clone());
        self.spawn(async move {
            let turn = turns.enter(replayer.endpoint.org.clone()).await;
            let replayed = replayer.replay().await;
            drop((turn, guard));
            if let Err(error) = &replayed {
                tracing::warn!(webhook = %key.webhook, %error, "A webhook's replay waits for the log");
                sleep(REFILL_AGAIN).await;
            }
            report(&tell, Report::Replayed(key, replayed.ok()));
        });
    }

    pub(super) fn take_over(
        &self,
        (log, feed): (EventLog, Feed),
        checkpoints: Checkpoints<Checkpoint>,
        round: Round,
        partitions: Vec<u16>,
    ) {
        let tell = self.tell.clone();
        self.spawn(async move {
            let taken = takeover::take_over(&log, feed, &checkpoints, partitions).await;
            report(&tell, Report::TakenOver(round, taken));
        });
    }

    /// Reads which deliveries of these partitions wait for a retry.
    pub(super) fn load_retries(
        &self,
        (log, feed): (EventLog, Feed),
        round: Round,
        partitions: BTreeSet<u16>,
        (open, attempts_end): (OpenRecords, u64),
    ) {
        let tell = self.tell.clone();
        self.spawn(async move {
            let is_ours =
                |webhook: &WebhookId| partitions.contains(&partition_of(webhook.as_str()));
            let loaded = takeover::load_retries(&log, feed, is_ours, &open, attempts_end).await;
            let (waiting, read) = (loaded.waiting.len(), loaded.read);
            tracing::debug!(waiting, read, "Read which deliveries are to be retried");
            report(&tell, Report::RetriesLoaded(round, loaded.waiting));
        });
    }

    /// Queries the end of the deliveries' log; a failure is left to the next query.
    pub(super) fn look_for_end(&self, log: &EventLog) {
        let (log, tell) = (log.clone(), self.tell.clone());
        self.spawn(async move {
            if let Ok(end) = log.end(Log::Deliveries).await {
                report(&tell, Report::AttemptsEnd(end.sequence()));
            }
        });
    }

    /// Ends deliveries whose last attempts are at `records`.
    pub(super) fn give_up(&self, sender: &Arc<Sender>, number: u64, records: Vec<u64>) {
        let (sender, tell) = (sender.clone(), self.tell.clone());
        self.spawn(async move {
            let reason = "the endpoint was disabled or deleted";
            stream::iter(records)
                .for_each_concurrent(GIVING_UP, |record| sender.give_up(record, reason))
                .await;
            report(&tell, Report::GaveUp(number));
        });
    }
}

fn report(tell: &mpsc::UnboundedSender<Report>, report: Report) {
    // The receiver is gone only once everything has ended.
    let _ = tell.send(report);
}
