//! Endpoints gained and lost by this process.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use schemas::WebhookId;

use super::checkpoint::Checkpoint;
use super::directory::Endpoint;
use super::dispatcher::Dispatcher;
use super::feed::Feed;
use super::open_records::OpenRecords;
use super::partitions::Retries;
use super::queue::EndpointQueue;
use super::requests::RequestCursor;
use super::takeover::{TakenOver, Waiting};
use crate::leases::{Round, partition_of};

impl Dispatcher {
    /// Applies the current ownership.
    pub(super) fn change_ownership(&mut self) {
        let owned = self.owned.borrow_and_update().clone();
        let changed = self.state.partitions.change(&owned);
        self.saving.retain(&owned);
        let (gained, lost) = (changed.gained.len(), changed.lost.len());
        tracing::debug!(gained, lost, "The partitions of webhooks changed");
        for (partition, _) in changed.lost {
            self.state.scheduler.remove_partition(partition);
            self.state
                .giving_up
                .retain(|_, of| of.partition != partition);
        }
        if !changed.gained.is_empty() {
            let from = (self.sender.log.clone(), self.sender.feed);
            self.tasks.take_over(
                from,
                self.saving.checkpoints().clone(),
                changed.round,
                changed.gained,
            );
        }
    }

    /// Creates queues for the partitions whose checkpoints were read.
    pub(super) fn serve(&mut self, round: Round, taken: TakenOver) {
        self.state.attempts_through = self.state.attempts_through.max(taken.attempts_end);
        let mut open = OpenRecords::new(Vec::new(), taken.attempts_end);
        let mut served = BTreeSet::new();
        for (partition, checkpoint) in taken.partitions {
            // Without a checkpoint each endpoint starts where it was created.
            let checkpoint = checkpoint.unwrap_or_default();
            let retries = Retries::Loading(round, checkpoint.retries.clone());
            let serving = self.state.partitions.serve(partition, round, retries);
            if serving.is_err() {
                continue;
            }
            open = open.and(&checkpoint.retries);
            served.insert(partition);
            for (endpoint, queue) in self.queues_of(partition, &checkpoint, taken.events_end) {
                let named = (&endpoint.org, &endpoint.id);
                self.state.scheduler.insert(named, partition, queue);
            }
        }
        let from = (self.sender.log.clone(), self.sender.feed);
        let what = (open, taken.attempts_end);
        self.tasks.load_retries(from, round, served, what);
    }

    fn queues_of(
        &self,
        partition: u16,
        checkpoint: &Checkpoint,
        events_end: u64,
    ) -> Vec<(Arc<Endpoint>, EndpointQueue)> {
        let queue_of = |endpoint: &Endpoint, since: u64| {
            let known = checkpoint.queues.get(&endpoint.id);
            let known = known.cloned().unwrap_or_default();
            let through = known.through.unwrap_or(checkpoint.through).max(since);
            let mut queue = EndpointQueue::resume(self.bounds(), through, events_end, self.cursor);
            queue.remember_failing(known.failing_since);
            let place = known.requests;
            let place = place.unwrap_or(RequestCursor::behind(checkpoint.requests_through));
            // Requests from before it was disabled were dropped with the events it would have got
            // then.
            let enabled = endpoint.enabled_since().unwrap_or_default();
            let place = Some(place).filter(|place| place.done >= enabled);
            queue.with_requests(
                endpoint.asked,
                place.unwrap_or(RequestCursor::behind(enabled)),
            )
        };
        let ours = self
            .directory
            .all()
            .filter(|endpoint| partition_of(endpoint.id.as_str()) == partition);
        ours.filter_map(|endpoint| {
            let since = match self.sender.feed {
                Feed::Events => endpoint.enabled_since()?,
                // Whether it wanted a position is decided by time.
                Feed::Locations => endpoint.enabled_since().map(|_| 0)?,
            };
            Some((Arc::clone(endpoint), queue_of(endpoint, since)))
        })
        .collect()
    }

    /// Takes deliveries that were found to wait for a retry.
    pub(super) fn take_waiting(&mut self, round: Round, waiting: Vec<Waiting>) {
        let mut stopped: HashMap<WebhookId, Vec<u64>> = HashMap::new();
        for Waiting {
            webhook,
            sequence,
            retry,
        } in waiting
        {
            match self.state.scheduler.touch(&webhook) {
                Some(slot) => slot.queue.remember(sequence, retry),
                None => stopped.entry(webhook).or_default().push(retry.recorded),
            }
        }
        for (webhook, records) in stopped {
            self.end_if_stopped(&webhook, records);
        }
        self.state.partitions.retries_loaded(round);
    }
}
