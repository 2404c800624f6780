//! Follows the log, passes every wanted event to its endpoints' queues, and starts what is due.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use event_log::{Batch, TailError};
use schemas::{OrgId, Recorded, Visibility};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use super::checkpoint::Checkpoint;
use super::concurrency::ConcurrencyLimit;
use super::directory::{Change, Directory};
use super::feed::Feed;
use super::partitions::Retries;
use super::payload::{Payload, PayloadCache};
use super::queue::EndpointQueue;
use super::refill;
use super::replay::Replayer;
use super::requests::RequestCursor;
use super::scheduler::{Action, QueueKey, Scheduler};
use super::sender::{Job, Sender};
use super::settings::WebhookSettings;
use super::source::{News, Source};
use super::tasks::{Report, Tasks};
use super::work::Bounds;
use crate::checkpoints::Saving;
use crate::erasure;
use crate::leases::{Leases, Owned, OwnedPartitions, partition_of};

/// How many deliveries of all endpoints may wait for a retry before failing ones are held sooner.
pub(super) const CROWD: usize = 200_000;
const CHECKPOINT_EVERY: Duration = Duration::from_secs(1);
/// How often the end of the deliveries' log is queried.
const END_EVERY: Duration = Duration::from_secs(10);
const TAIL_ATTEMPTS: u32 = 3;
const TAIL_AGAIN: Duration = Duration::from_secs(1);

/// Deliveries that are being ended, by their last attempts.
pub(super) struct GivingUp {
    pub(super) partition: u16,
    pub(super) records: Vec<u64>,
}

/// The dispatcher. All its state is its own; tasks only report to it.
pub(super) struct Dispatcher {
    pub(super) sender: Arc<Sender>,
    pub(super) settings: WebhookSettings,
    pub(super) leases: Leases,
    pub(super) owned: watch::Receiver<Owned>,
    pub(super) directory: Directory,
    pub(super) source: Source,
    /// The sequence up to which events were passed to queues.
    pub(super) cursor: u64,
    pub(super) reports: mpsc::UnboundedReceiver<Report>,
    pub(super) tasks: Tasks,
    /// Checkpoints that are being saved.
    pub(super) saving: Saving<Checkpoint>,
    /// Limit for requests to all endpoints, shared with the other dispatcher.
    pub(super) limit: ConcurrencyLimit,
    pub(super) state: State,
}

/// State of the dispatcher's work.
#[derive(Default)]
pub(super) struct State {
    pub(super) scheduler: Scheduler,
    pub(super) partitions: OwnedPartitions<Retries>,
    /// The sequence up to which recorded attempts are known.
    pub(super) attempts_through: u64,
    /// The end of the deliveries' log when it was last queried.
    pub(super) attempts_end: u64,
    pub(super) payload_cache: PayloadCache,
    /// Requests in progress.
    pub(super) sending: usize,
    pub(super) giving_up: HashMap<u64, GivingUp>,
    given_up: u64,
    tail_failures: u32,
}

impl Dispatcher {
    /// Delivers until `shutdown`.
    ///
    /// # Errors
    /// If the log cannot be followed.
    pub(super) async fn run(mut self, shutdown: CancellationToken) -> Result<(), TailError> {
        let mut checkpoint = interval(CHECKPOINT_EVERY);
        let mut end = interval(END_EVERY);
        for every in [&mut checkpoint, &mut end] {
            every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        self.change_ownership();
        let mut freed = self.limit.freed();
        let ended = loop {
            let until_wake = self.until_wake();
            tokio::select! {
                news = self.source.next() => match news {
                    Ok(news) => self.take_news(&news),
                    Err(error) => if let Err(error) = self.endure(error).await {
                        break Err(error);
                    },
                },
                Some(report) = self.reports.recv() => self.take_reports(report),
                Ok(()) = freed.changed() => {}
                Ok(()) = self.owned.changed() => self.change_ownership(),
                () = sleep(until_wake) => self.state.scheduler.wake(self.now()),
                _ = checkpoint.tick() => self.save_and_measure(),
                _ = end.tick() => self.tasks.look_for_end(&self.sender.log),
                () = self.saving.ended() => {}
                () = shutdown.cancelled() => break Ok(()),
            }
            self.start_what_is_due();
        };
        self.finish().await;
        ended
    }

    pub(super) fn now(&self) -> DateTime<Utc> {
        self.sender.clock.now()
    }

    fn until_wake(&self) -> Duration {
        let wake = self.state.scheduler.next_wake();
        let left = wake.map(|wake| (wake - self.now()).to_std().unwrap_or_default());
        left.unwrap_or(CHECKPOINT_EVERY)
    }

    async fn endure(&mut self, error: TailError) -> Result<(), TailError> {
        self.state.tail_failures += 1;
        if self.state.tail_failures == TAIL_ATTEMPTS {
            return Err(error);
        }
        tracing::warn!(%error, "Webhooks: waiting for the log");
        sleep(TAIL_AGAIN).await;
        Ok(())
    }

    fn take_news(&mut self, news: &News) {
        self.state.tail_failures = 0;
        match news {
            News::Events(batch) => {
                self.take_batch(batch);
                self.cursor = batch.last_sequence;
            }
            News::Endpoints(batch) => self.take_batch(batch),
            News::Positions(brought) => {
                for (recorded, orgs) in &brought.positions {
                    for org in orgs {
                        self.offer(recorded, org);
                    }
                }
                self.cursor = brought.last_sequence;
            }
        }
    }

    /// Passes events to the queues that want them.
    fn take_batch(&mut self, batch: &Batch) {
        for recorded in batch.readable("webhooks") {
            if let Some(change) = self.directory.apply(recorded) {
                let since = match self.sender.feed {
                    Feed::Events => recorded.sequence,
                    Feed::Locations => self.cursor,
                };
                self.change_endpoint(change, since);
            }
            if erasure::is_announced_by(&recorded.event) {
                let payload_cache = &mut self.state.payload_cache;
                payload_cache.forget_before(recorded.sequence, &recorded.stream);
            }
            let public = recorded.event.visibility() == Visibility::Public;
            if public && self.sender.feed == Feed::Events {
                self.offer(recorded, &recorded.stream.org);
            }
        }
    }

    fn offer(&mut self, recorded: &Recorded, org: &OrgId) {
        let (sequence, name) = (recorded.sequence, recorded.event.name());
        let when = self.sender.feed.when(recorded);
        let interested = self.directory.interested(org, when, &name);
        let mut held = false;
        for endpoint in interested {
            if let Some(slot) = self.state.scheduler.touch(&endpoint.id) {
                held |= slot.queue.offer(sequence);
            }
        }
        if held && let Some(payload) = Payload::plain(&self.sender.log, recorded) {
            self.state.payload_cache.put(payload, Instant::now());
        }
    }

    fn change_endpoint(&mut self, change: Change, sequence: u64) {
        match change {
            Change::Enabled(webhook) => {
                let partition = partition_of(webhook.as_str());
                if let Some(slot) = self.state.scheduler.touch(&webhook) {
                    slot.queue.forgive();
                    slot.disabling = false;
                } else if let (Some(endpoint), true) = (
                    self.directory.get(&webhook),
                    self.state.partitions.serves(partition),
                ) {
                    let through = self.directory.through();
                    let queue = EndpointQueue::new(self.bounds(), sequence)
                        .with_requests(through, RequestCursor::behind(through));
                    let named = (&endpoint.org, &webhook);
                    self.state.scheduler.insert(named, partition, queue);
                }
            }
            Change::Asked(webhook) => {
                let asked = self.directory.through();
                if let Some(slot) = self.state.scheduler.touch(&webhook) {
                    slot.queue.requests().ask(asked);
                }
            }
            Change::Stopped(webhook) => {
                if let Some(slot) = self.state.scheduler.remove(&webhook) {
                    self.give_up(slot.partition, slot.queue.retry_records());
                }
            }
        }
    }

    pub(super) fn bounds(&self) -> Bounds {
        Bounds {
            concurrency: self.settings.concurrency,
            pending: self.settings.pending,
        }
    }

    /// Ends deliveries that will not be retried, in the background.
    pub(super) fn give_up(&mut self, partition: u16, records: Vec<u64>) {
        if records.is_empty() {
            return;
        }
        self.state.given_up += 1;
        let number = self.state.given_up;
        self.tasks.give_up(&self.sender, number, records.clone());
        let giving_up = GivingUp { partition, records };
        self.state.giving_up.insert(number, giving_up);
    }

    /// Queues the deliveries requested by an endpoint's owner.
    fn replay(&mut self, key: QueueKey, partition: u16, place: RequestCursor) {
        let Some(endpoint) = self.directory.get(&key.webhook).cloned() else {
            return;
        };
        let queue = self.state.scheduler.touch_exactly(&key);
        let first_attempts = queue.and_then(|slot| slot.queue.cursor());
        let replayer = Replayer {
            sender: self.sender.clone(),
            endpoint,
            place,
            asked: self.directory.through(),
            first_attempts: first_attempts.unwrap_or(self.cursor),
        };
        let guard = self.leases.guard(partition);
        self.tasks.replay(replayer, key, guard);
    }

    fn start_what_is_due(&mut self) {
        loop {
            let now = self.now();
            let (leases, limit) = (&self.leases, &self.limit);
            let action = self.state.scheduler.next(now, |p| leases.owns(p), limit);
            let Some(action) = action else { return };
            match action {
                Action::Refill(key, gap) => {
                    let endpoint = self.directory.get(&key.webhook).cloned();
                    if let Some(endpoint) = endpoint {
                        let reader = refill::Reader {
                            log: self.sender.log.clone(),
                            people: self.sender.people.clone(),
                            feed: self.sender.feed,
                            now,
                        };
                        self.tasks.refill(reader, key, endpoint, gap, self.cursor);
                    }
                }
                Action::Replay(key, partition, place) => self.replay(key, partition, place),
                Action::Attempt(key, partition, work, permit) => {
                    let Some(endpoint) = self.directory.get(&key.webhook).cloned() else {
                        continue;
                    };
                    self.state.sending += 1;
                    let payload_cache = &self.state.payload_cache;
                    let payload = payload_cache.get(work.sequence, Instant::now());
                    let guard = self.leases.guard(partition);
                    let job = Job {
                        endpoint,
                        work,
                        payload,
                        permit,
                    };
                    self.tasks.deliver(&self.sender, key, job, guard);
                }
            }
        }
    }
}
