//! All lanes of this process: which has something to do now, and which later.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, TimeDelta, Utc};
use schemas::{OrgId, WebhookId};

use super::checkpoint::{Checkpoint, LaneCheckpoint};
use super::lane::Lane;
use super::places::{Full, Place, Places};
use super::requests;
use super::turns::{PassedOver, Turns};
use super::work::{Gap, Work};

/// When a lane is looked at again whose partition was not surely ours.
const LEASE_AGAIN: TimeDelta = TimeDelta::milliseconds(200);

/// A lane and its place among the others.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) lane: Lane,
    pub(super) org: OrgId,
    pub(super) partition: u16,
    /// Tells this lane from an earlier one of the same endpoint, whose attempts may still end.
    pub(super) generation: u64,
    /// Whether the endpoint is being switched off.
    pub(super) disabling: bool,
    is_ready: bool,
    wake: Option<DateTime<Utc>>,
}

/// A lane's name that outlives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LaneKey {
    pub(super) webhook: WebhookId,
    pub(super) generation: u64,
}

/// What a lane wants next.
#[derive(Debug)]
pub(super) enum Wish {
    /// An attempt, which now counts as under way in this place.
    Attempt(LaneKey, u16, Work, Place),
    /// More from the log.
    Refill(LaneKey, Gap),
    /// Deliveries that its owner asked for, from this place among its requests on.
    Walk(LaneKey, u16, requests::Place),
}

/// All lanes.
#[derive(Debug, Default)]
pub(super) struct Roster {
    slots: HashMap<WebhookId, Slot>,
    /// Lanes that may have something to do.
    ready: Turns,
    wakes: BTreeSet<(DateTime<Utc>, WebhookId)>,
    generations: u64,
    /// Whether all lanes together have too much to try again.
    pub(super) crowded: bool,
}

impl Roster {
    pub(super) fn insert(
        &mut self,
        (org, webhook): (&OrgId, &WebhookId),
        partition: u16,
        lane: Lane,
    ) {
        self.generations += 1;
        let slot = Slot {
            lane,
            org: org.clone(),
            partition,
            generation: self.generations,
            disabling: false,
            is_ready: false,
            wake: None,
        };
        self.remove(webhook);
        self.slots.insert(webhook.clone(), slot);
        self.touch(webhook);
    }

    pub(super) fn remove(&mut self, webhook: &WebhookId) -> Option<Slot> {
        let slot = self.slots.remove(webhook)?;
        if let Some(wake) = slot.wake {
            self.wakes.remove(&(wake, webhook.clone()));
        }
        if slot.is_ready {
            self.ready.remove(&slot.org, webhook);
        }
        Some(slot)
    }

    pub(super) fn remove_partition(&mut self, partition: u16) {
        let of_it =
            |(id, slot): (&WebhookId, &Slot)| (slot.partition == partition).then(|| id.clone());
        let gone: Vec<WebhookId> = self.slots.iter().filter_map(of_it).collect();
        for webhook in gone {
            self.remove(&webhook);
        }
    }

    /// The endpoint's lane, to be changed; it is looked at in its turn.
    pub(super) fn touch(&mut self, webhook: &WebhookId) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(webhook)?;
        if !slot.is_ready {
            slot.is_ready = true;
            self.ready.push(&slot.org, webhook.clone());
        }
        Some(slot)
    }

    /// The lane of this name, unless another has taken its place.
    pub(super) fn touch_exactly(&mut self, key: &LaneKey) -> Option<&mut Slot> {
        self.touch(&key.webhook)
            .filter(|slot| slot.generation == key.generation)
    }

    /// Every lane.
    pub(super) fn lanes(&self) -> impl Iterator<Item = &Lane> {
        self.slots.values().map(|slot| &slot.lane)
    }

    /// What is to be done next; `owns` says whether a partition is surely ours. Lanes for whose
    /// attempts there is no place keep their turns.
    pub(super) fn next(
        &mut self,
        now: DateTime<Utc>,
        owns: impl Fn(u16) -> bool,
        places: &Places,
    ) -> Option<Wish> {
        if places.free() == 0 {
            return None;
        }
        let mut over = PassedOver::default();
        let wish = self.next_but(now, owns, places, &mut over);
        self.ready.put_back(over);
        wish
    }

    fn next_but(
        &mut self,
        now: DateTime<Utc>,
        owns: impl Fn(u16) -> bool,
        places: &Places,
        over: &mut PassedOver,
    ) -> Option<Wish> {
        while let Some((org, webhook)) = self.ready.pop() {
            let Some(slot) = self.slots.get_mut(&webhook) else {
                continue;
            };
            let (partition, crowded) = (slot.partition, self.crowded);
            let key = LaneKey {
                webhook: webhook.clone(),
                generation: slot.generation,
            };
            if let Some(gap) = slot.lane.wants_refill() {
                self.ready.push(&org, webhook);
                return Some(Wish::Refill(key, gap));
            }
            let owned = owns(partition);
            let place = owned.then(|| slot.lane.wants_walk(now, crowded));
            if let Some(place) = place.flatten() {
                self.ready.push(&org, webhook);
                return Some(Wish::Walk(key, partition, place));
            }
            if owned && slot.lane.has_next(now, crowded) {
                match places.try_enter(&org, &webhook) {
                    Ok(place) => {
                        let work = slot.lane.next(now, crowded);
                        self.ready.push(&org, webhook);
                        return work.map(|work| Wish::Attempt(key, partition, work, place));
                    }
                    Err(Full::Organization) => self.ready.pass_over(org, webhook, over),
                    Err(Full::Endpoint) => over.lane(org, webhook),
                }
                continue;
            }
            slot.is_ready = false;
            let wake = if owned {
                // What is due already waits for an attempt to end, which is no matter of time.
                slot.lane.wake(crowded).filter(|wake| *wake > now)
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

    /// When the next lane wants to be looked at.
    pub(super) fn next_wake(&self) -> Option<DateTime<Utc>> {
        self.wakes.first().map(|(wake, _)| *wake)
    }

    /// Lets lanes whose time has come have their turn.
    pub(super) fn wake(&mut self, now: DateTime<Utc>) {
        while let Some((wake, webhook)) = self.wakes.first().cloned() {
            if wake > now {
                return;
            }
            self.set_wake(&webhook, None);
            self.touch(&webhook);
        }
    }

    /// How far a partition has come, where the log was followed up to `through`, attempts were
    /// recorded up to `attempts_through`, and owners' requests known up to `requests_through`.
    pub(super) fn checkpoint(
        &self,
        partition: u16,
        through: u64,
        attempts_through: u64,
        requests_through: u64,
    ) -> Checkpoint {
        let mut lanes = BTreeMap::new();
        let mut attempts_after = attempts_through;
        for (webhook, slot) in &self.slots {
            if slot.partition != partition {
                continue;
            }
            let lane = LaneCheckpoint {
                through: slot.lane.cursor(),
                failing_since: slot.lane.failing_since(),
                requests: slot.lane.open_requests(),
            };
            if lane != LaneCheckpoint::default() {
                lanes.insert(webhook.clone(), lane);
            }
            if let Some(oldest) = slot.lane.oldest_record() {
                attempts_after = attempts_after.min(oldest - 1);
            }
        }
        Checkpoint {
            through,
            attempts_after,
            requests_through,
            lanes,
        }
    }
}

#[cfg(test)]
#[path = "roster_tests.rs"]
mod tests;
