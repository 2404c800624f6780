//! All queues of this process: which have something to do now, and which later.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use chrono::{DateTime, TimeDelta, Utc};
use schemas::{OrgId, WebhookId};

use super::checkpoint::EndpointCheckpoint;
use super::concurrency::{ConcurrencyLimit, Full, Permit};
use super::queue::EndpointQueue;
use super::requests;
use super::round_robin::{RoundRobin, Skipped};
use super::work::{Gap, Work};

/// When a queue is checked again whose partition was not certainly owned.
const LEASE_AGAIN: TimeDelta = TimeDelta::milliseconds(200);

/// A queue and its turn among the others.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) queue: EndpointQueue,
    pub(super) org: OrgId,
    pub(super) partition: u16,
    /// Distinguishes this queue from an earlier one of the same endpoint, whose attempts may still
    /// end.
    pub(super) generation: u64,
    /// Whether the endpoint is being disabled.
    pub(super) disabling: bool,
    is_ready: bool,
    wake: Option<DateTime<Utc>>,
}

/// A key of a queue that outlives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QueueKey {
    pub(super) webhook: WebhookId,
    pub(super) generation: u64,
}

/// What a queue wants next.
#[derive(Debug)]
pub(super) enum Action {
    /// An attempt, which now counts as in progress, and its permit.
    Attempt(QueueKey, u16, Work, Permit),
    /// More from the log.
    Refill(QueueKey, Gap),
    /// Deliveries requested by its owner, from this position on.
    Replay(QueueKey, u16, requests::RequestCursor),
}

/// All queues.
#[derive(Debug, Default)]
pub(super) struct Scheduler {
    slots: HashMap<WebhookId, Slot>,
    /// Endpoints by partition: a checkpoint looks only at its own.
    members: HashMap<u16, HashSet<WebhookId>>,
    /// Queues that may have something to do.
    ready: RoundRobin,
    wakes: BTreeSet<(DateTime<Utc>, WebhookId)>,
    generations: u64,
    /// Whether all queues together have too many retries.
    pub(super) crowded: bool,
}

impl Scheduler {
    pub(super) fn insert(
        &mut self,
        (org, webhook): (&OrgId, &WebhookId),
        partition: u16,
        queue: EndpointQueue,
    ) {
        self.generations += 1;
        let slot = Slot {
            queue,
            org: org.clone(),
            partition,
            generation: self.generations,
            disabling: false,
            is_ready: false,
            wake: None,
        };
        self.remove(webhook);
        let members = self.members.entry(partition).or_default();
        members.insert(webhook.clone());
        self.slots.insert(webhook.clone(), slot);
        self.touch(webhook);
    }

    pub(super) fn remove(&mut self, webhook: &WebhookId) -> Option<Slot> {
        let slot = self.slots.remove(webhook)?;
        if let Some(members) = self.members.get_mut(&slot.partition) {
            members.remove(webhook);
        }
        if let Some(wake) = slot.wake {
            self.wakes.remove(&(wake, webhook.clone()));
        }
        if slot.is_ready {
            self.ready.remove(&slot.org, webhook);
        }
        Some(slot)
    }

    pub(super) fn remove_partition(&mut self, partition: u16) {
        for webhook in self.members.remove(&partition).unwrap_or_default() {
            self.remove(&webhook);
        }
    }

    /// The endpoint's queue, mutable; it is checked in its turn.
    pub(super) fn touch(&mut self, webhook: &WebhookId) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(webhook)?;
        if !slot.is_ready {
            slot.is_ready = true;
            self.ready.push(&slot.org, webhook.clone());
        }
        Some(slot)
    }

    /// The queue with this key, unless it was replaced.
    pub(super) fn touch_exactly(&mut self, key: &QueueKey) -> Option<&mut Slot> {
        self.touch(&key.webhook)
            .filter(|slot| slot.generation == key.generation)
    }

    /// Every queue.
    pub(super) fn queues(&self) -> impl Iterator<Item = &EndpointQueue> {
        self.slots.values().map(|slot| &slot.queue)
    }

    /// The next action; `owns` says whether a partition is certainly owned. Queues that get no
    /// permit for their attempts keep their turns.
    pub(super) fn next(
        &mut self,
        now: DateTime<Utc>,
        owns: impl Fn(u16) -> bool,
        limit: &ConcurrencyLimit,
    ) -> Option<Action> {
        if limit.free() == 0 {
            return None;
        }
        let mut over = Skipped::default();
        let action = self.next_but(now, owns, limit, &mut over);
        self.ready.put_back(over);
        action
    }

    fn next_but(
        &mut self,
        now: DateTime<Utc>,
        owns: impl Fn(u16) -> bool,
        limit: &ConcurrencyLimit,
        over: &mut Skipped,
    ) -> Option<Action> {
        while let Some((org, webhook)) = self.ready.pop() {
            let Some(slot) = self.slots.get_mut(&webhook) else {
                continue;
            };
            let (partition, crowded) = (slot.partition, self.crowded);
            let key = QueueKey {
                webhook: webhook.clone(),
                generation: slot.generation,
            };
            if let Some(gap) = slot.queue.wants_refill() {
                self.ready.push(&org, webhook);
                return Some(Action::Refill(key, gap));
            }
            let owned = owns(partition);
            let place = owned.then(|| slot.queue.wants_replay(now, crowded));
            if let Some(place) = place.flatten() {
                self.ready.push(&org, webhook);
                return Some(Action::Replay(key, partition, place));
            }
            if owned && slot.queue.has_next(now, crowded) {
                match limit.try_enter(&org, &webhook) {
                    Ok(permit) => {
                        let work = slot.queue.next(now, crowded);
                        self.ready.push(&org, webhook);
                        return work.map(|work| Action::Attempt(key, partition, work, permit));
                    }
                    Err(Full::Organization) => self.ready.pass_over(org, webhook, over),
                    Err(Full::Endpoint) => over.queue(org, webhook),
                }
                continue;
            }
            slot.is_ready = false;
            let wake = if owned {
                // What is already due waits for an attempt to end, not for a time.
                slot.queue.wake(crowded).filter(|wake| *wake > now)
            } else {
                Some(now + LEASE_AGAIN)
            };
            self.set_wake(&webhook, wake);
        }
        None
    }

    fn set_wake(&mut self, webhook: &WebhookId, wake: Option<DateTime<Utc>>) {
        let Some(slot) = self.slots.get_mut(webhook) else {
            return;
        };
        if let Some(old) = slot.wake.take() {
            self.wakes.remove(&(old, webhook.clone()));
        }
        slot.wake = wake;
        if let Some(wake) = wake {
            self.wakes.insert((wake, webhook.clone()));
        }
    }

    /// When the next queue needs to be checked.
    pub(super) fn next_wake(&self) -> Option<DateTime<Utc>> {
        self.wakes.first().map(|(wake, _)| *wake)
    }

    /// Makes queues ready whose time has come.
    pub(super) fn wake(&mut self, now: DateTime<Utc>) {
        while let Some((wake, webhook)) = self.wakes.first().cloned() {
            if wake > now {
                return;
            }
            self.set_wake(&webhook, None);
            self.touch(&webhook);
        }
    }

    /// The checkpoints of a partition's endpoints that have something open or fail.
    pub(super) fn checkpoints(&self, partition: u16) -> BTreeMap<WebhookId, EndpointCheckpoint> {
        let mut queues = BTreeMap::new();
        for (webhook, slot) in self.slots_of(partition) {
            let queue = EndpointCheckpoint {
                through: slot.queue.cursor(),
                failing_since: slot.queue.failing_since(),
                requests: slot.queue.open_requests(),
            };
            if queue != EndpointCheckpoint::default() {
                queues.insert(webhook.clone(), queue);
            }
        }
        queues
    }

    /// The sequences in the deliveries' log of a partition's deliveries still to be retried.
    pub(super) fn open_records(&self, partition: u16) -> impl Iterator<Item = u64> {
        let slots = self.slots_of(partition);
        slots.flat_map(|(_, slot)| slot.queue.open_records())
    }

    fn slots_of(&self, partition: u16) -> impl Iterator<Item = (&WebhookId, &Slot)> {
        let members = self.members.get(&partition).into_iter().flatten();
        members.filter_map(|webhook| Some((webhook, self.slots.get(webhook)?)))
    }
}

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;
