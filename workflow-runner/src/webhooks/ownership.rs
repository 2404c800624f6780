//! Endpoints that become ours, and those that no longer are.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use schemas::WebhookId;

use super::checkpoint::Checkpoint;
use super::directory::Endpoint;
use super::dispatcher::Dispatcher;
use super::feed::Feed;
use super::lane::Lane;
use super::requests::Place;
use super::takeover::{TakenOver, Waiting};

impl Dispatcher {
    /// Takes note of what is owned now.
    pub(super) fn change_ownership(&mut self) {
        let owned = self.owned.borrow_and_update().clone();
        let changed = self.state.tenures.change(&owned);
        let (gained, lost) = (changed.gained.len(), changed.lost.len());
        tracing::debug!(gained, lost, "The partitions of webhooks changed");
        for partition in changed.lost {
            self.state.roster.remove_partition(partition);
            self.state
                .giving_up
                .retain(|_, of| of.partition != partition);
        }
        if !changed.gained.is_empty() {
            let from = (self.courier.log.clone(), self.courier.feed);
            self.tasks.take_over(
                from,
                self.checkpoints.clone(),
                changed.round,
                changed.gained,
            );
        }
    }

    /// Makes lanes for partitions whose checkpoints were read.
    pub(super) fn serve(&mut self, round: u64, taken: TakenOver) {
        self.state.attempts_through = self.state.attempts_through.max(taken.attempts_end);
        let mut after = taken.attempts_end;
        let mut served = BTreeSet::new();
        for (partition, checkpoint) in taken.partitions {
            // Without a checkpoint each endpoint starts where it was made.
            let checkpoint = checkpoint.unwrap_or_default();
            if !self
                .state
                .tenures
                .taken_over(partition, round, checkpoint.attempts_after)
            {
                continue;
            }
            after = after.min(checkpoint.attempts_after);
            served.insert(partition);
            for (endpoint, lane) in self.lanes_of(partition, &checkpoint, taken.events_end) {
                let named = (&endpoint.org, &endpoint.id);
                self.state.roster.insert(named, partition, lane);
            }
        }
        let (from, leases) = (
            (self.courier.log.clone(), self.courier.feed),
            self.leases.clone(),
        );
        self.tasks
            .recall(from, leases, round, served, after..taken.attempts_end);
    }

    fn lanes_of(
        &self,
        partition: u16,
        checkpoint: &Checkpoint,
        events_end: u64,
    ) -> Vec<(Arc<Endpoint>, Lane)> {
        let lane_of = |endpoint: &Endpoint, since: u64| {
            let known = checkpoint.lanes.get(&endpoint.id);
            let known = known.cloned().unwrap_or_default();
            let through = known.through.unwrap_or(checkpoint.through).max(since);
            let mut lane = Lane::resume(self.bounds(), through, events_end, self.cursor);
            lane.remember_failing(known.failing_since);
            let place = known.requests;
            let place = place.unwrap_or(Place::behind(checkpoint.requests_through));
            // What was asked for before it was disabled went with what it was to get then.
            let enabled = endpoint.enabled_since().unwrap_or_default();
            let place = Some(place).filter(|place| place.done >= enabled);
            lane.with_requests(endpoint.asked, place.unwrap_or(Place::behind(enabled)))
        };
        let ours = self
            .directory
            .all()
            .filter(|endpoint| self.leases.partition_of(endpoint.id.as_str()) == partition);
        ours.filter_map(|endpoint| {
            let since = match self.courier.feed {
                Feed::Events => endpoint.enabled_since()?,
                // Which positions it wanted is told by the clock.
                Feed::Locations => endpoint.enabled_since().map(|_| 0)?,
            };
            Some((Arc::clone(endpoint), lane_of(endpoint, since)))
        })
        .collect()
    }

    /// Takes deliveries that were found to wait to be tried again.
    pub(super) fn take_waiting(&mut self, round: u64, waiting: Vec<Waiting>) {
        let mut stopped: HashMap<WebhookId, Vec<u64>> = HashMap::new();
        for Waiting {
            webhook,
            sequence,
            retry,
        } in waiting
        {
            match self.state.roster.touch(&webhook) {
                Some(slot) => slot.lane.remember(sequence, retry),
                None => stopped.entry(webhook).or_default().push(retry.recorded),
            }
        }
        for (webhook, records) in stopped {
            self.end_if_stopped(&webhook, records);
        }
        self.state.tenures.recalled(round);
    }
}
