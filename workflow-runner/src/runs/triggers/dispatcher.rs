//! Follows the log, and has the relevant events matched.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use event_log::{Batch, Commit, Follower};
use indexmap::IndexMap;
use schemas::{Log, OrgId, Recorded};
use service::Shares;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use super::super::measure;
use super::checkpoint::TriggerCheckpoint;
use super::matcher::Matcher;
use super::org_queues::{OrgQueues, Turn};
use super::timers::Timers;
use super::{Error, read_workflows};
use crate::checkpoints::{Checkpoints, Saving};
use crate::leases::{Leases, Owned, OwnedPartitions, Round, partition_of};
use crate::runs::RunSettings;

const EVENTS_AT_ONCE: usize = 512;
/// Organizations whose events are matched at the same time, and whose schedules are appended for.
const QUEUES_AT_ONCE: usize = 32;

/// A partition being taken over: its checkpoint, and the waits that were open.
type Taken = (u16, TriggerCheckpoint, Vec<Recorded>);

/// What is appended for an organization because of the clock.
#[derive(Default)]
struct DueCommits {
    triggers: Vec<Commit>,
    notices: Vec<Commit>,
}

pub(super) struct Dispatcher {
    matcher: Arc<Matcher>,
    leases: Leases,
    owned: watch::Receiver<Owned>,
    saving: Saving<TriggerCheckpoint>,
    settings: RunSettings,
    /// Up to where events have been given to queues, by partition.
    partitions: OwnedPartitions<u64>,
    taking_over: JoinSet<(Round, Vec<Taken>)>,
    /// Follows the log from the first partition on.
    tail: Option<Follower>,
    /// Up to where saved workflows were read before there was a tail.
    listed_to: u64,
    queues: OrgQueues,
    matching: JoinSet<(Turn, u64)>,
    timers: Timers,
    firing: JoinSet<()>,
    /// Turns to append what is due, since very many organizations may have something due at once.
    firing_turns: Shares<OrgId>,
    /// Whether all owned partitions are matched, for the readiness check.
    following: Arc<AtomicBool>,
}

impl Dispatcher {
    /// `listed_to` is up to where the matcher knows the workflows.
    pub(super) fn new(
        (matcher, listed_to): (Arc<Matcher>, u64),
        leases: Leases,
        checkpoints: Checkpoints<TriggerCheckpoint>,
        settings: RunSettings,
        following: Arc<AtomicBool>,
    ) -> Self {
        Self {
            owned: leases.owned(),
            matcher,
            leases,
            saving: Saving::new(checkpoints, settings.checkpoint / 2),
            settings,
            partitions: OwnedPartitions::default(),
            taking_over: JoinSet::new(),
            tail: None,
            listed_to,
            queues: OrgQueues::default(),
            matching: JoinSet::new(),
            timers: Timers::default(),
            firing: JoinSet::new(),
            firing_turns: Shares::new(QUEUES_AT_ONCE),
            following,
        }
    }

    pub(super) async fn run(mut self, shutdown: CancellationToken) -> Result<(), Error> {
        let mut checkpoint = interval(self.settings.checkpoint);
        checkpoint.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.reassign();
        loop {
            self.start_what_fits();
            self.following
                .store(self.partitions.all_served(), Ordering::Relaxed);
            let timer = self.timers.until_next(self.matcher.clock.now());
            tokio::select! {
                () = shutdown.cancelled() => break,
                changed = self.owned.changed() => match changed {
                    Ok(()) => self.reassign(),
                    Err(_) => break,
                },
                Some(taken) = self.taking_over.join_next() => self.take_over(taken).await?,
                Some(matched) = self.matching.join_next() => self.matched(matched)?,
                batch = next_batch(&mut self.tail) => self.take_in(batch?),
                () = sleep(timer) => self.fire(),
                _ = checkpoint.tick() => self.save(),
                Some(_) = self.firing.join_next() => {}
                () = self.saving.ended() => {}
            }
        }
        self.saving.finish(self.checkpoints_now()).await;
        Ok(())
    }

    fn is_ours(&self, org: &OrgId) -> bool {
        let partition = partition_of(org.as_str());
        self.partitions.serves(partition)
    }

    /// Releases partitions that are no longer ours and starts to take over new ones.
    fn reassign(&mut self) {
        let owned = Arc::clone(&self.owned.borrow_and_update());
        let changed = self.partitions.change(&owned);
        self.saving.retain(&owned);
        self.queues.retain(|partition| owned.contains(&partition));
        let is_ours = |org: &OrgId| owned.contains(&partition_of(org.as_str()));
        self.timers.retain(is_ours);
        self.matcher.write(|index| index.waits.retain(is_ours));
        self.matcher.cause_counts().retain(is_ours);
        if !changed.gained.is_empty() {
            let (log, checkpoints) = (self.matcher.log.clone(), self.saving.checkpoints().clone());
            self.taking_over.spawn(async move {
                let mut taken = Vec::with_capacity(changed.gained.len());
                for partition in changed.gained {
                    let checkpoint = checkpoints.read(partition).await.unwrap_or_default();
                    let waits = checkpoint.waits(&log).await;
                    taken.push((partition, checkpoint, waits));
                }
                (changed.round, taken)
            });
        }
    }

    /// Moves the tail back to the earliest checkpoint of the new partitions; the others skip what
    /// they already know.
    async fn take_over(
        &mut self,
        taken: Result<(Round, Vec<Taken>), JoinError>,
    ) -> Result<(), Error> {
        let (round, taken) = taken?;
        if self.tail.is_none() {
            // Nothing was followed so far, and the tail may begin after what was saved meanwhile.
            self.listed_to = read_workflows(&self.matcher, self.listed_to).await?;
        }
        let mut after = self.tail.as_ref().map(Follower::last_sequence);
        for (partition, checkpoint, waits) in taken {
            let through = checkpoint.through;
            // It may have been lost again meanwhile.
            if self.partitions.serve(partition, round, through).is_err() {
                continue;
            }
            after = Some(after.map_or(through, |after| after.min(through)));
            let is_of_it = |org: &OrgId| partition_of(org.as_str()) == partition;
            self.matcher
                .cause_counts()
                .take_over(is_of_it, checkpoint.causes);
            self.matcher
                .write(|index| waits.iter().for_each(|wait| index.waits.apply(wait)));
            self.arm(partition);
        }
        let Some(after) = after else { return Ok(()) };
        if self
            .tail
            .as_ref()
            .is_none_or(|tail| tail.last_sequence() > after)
        {
            self.tail = Some(self.matcher.log.follow(Log::Events, after, &[]).await?);
        }
        Ok(())
    }

    fn arm(&mut self, partition: u16) {
        let now = self.matcher.clock.now();
        let all = self.matcher.read(|index| {
            let all = index.workflows.all_scheduled();
            let ours = all.filter(|(org, _)| partition_of(org.as_str()) == partition);
            ours.map(|(org, scheduled)| (org.clone(), Arc::clone(scheduled)))
                .collect::<Vec<_>>()
        });
        for (org, scheduled) in all {
            self.timers.arm(&org, &scheduled, now);
        }
    }

    fn take_in(&mut self, batch: Batch) {
        let last = batch.last_sequence;
        let events: Vec<Arc<Recorded>> = batch.into_readable("triggers").collect();
        self.learn(&events);
        let mut offered: IndexMap<OrgId, (u16, Vec<Arc<Recorded>>)> = IndexMap::new();
        for recorded in events {
            let partition = partition_of(recorded.stream.org.as_str());
            let folded_to = self.partitions.get(partition);
            let is_new = folded_to.is_some_and(|folded_to| *folded_to < recorded.sequence);
            if is_new && self.matcher.concerns_anybody(&recorded) {
                let org = recorded.stream.org.clone();
                let (_, events) = offered.entry(org).or_insert((partition, Vec::new()));
                events.push(recorded);
            }
        }
        for (org, (partition, events)) in offered {
            self.queues.offer(&org, partition, events);
        }
        for (_, folded_to) in self.partitions.served_mut() {
            *folded_to = last.max(*folded_to);
        }
    }

    /// Takes in what the events say of workflows and waits.
    fn learn(&mut self, events: &[Arc<Recorded>]) {
        let mut saved = Vec::new();
        self.matcher.write(|index| {
            for recorded in events {
                let org = &recorded.stream.org;
                let folded_to = self.partitions.get(partition_of(org.as_str())).copied();
                let scheduled = index.learn(recorded, folded_to);
                saved.extend(scheduled.map(|scheduled| (org.clone(), scheduled)));
            }
        });
        let now = self.matcher.clock.now();
        for (org, scheduled) in saved {
            if self.is_ours(&org) {
                self.timers.arm(&org, &scheduled, now);
            }
        }
    }

    fn start_what_fits(&mut self) {
        while self.matching.len() < QUEUES_AT_ONCE {
            let Some((turn, task)) = self.queues.next() else {
                return;
            };
            let matcher = Arc::clone(&self.matcher);
            // The counts that the queue began with: once it is lost, they are dropped.
            let batch = matcher.cause_counts().open(&turn.org);
            self.matching.spawn(async move {
                let through = matcher.match_events(&turn.org, task, batch).await;
                (turn, through)
            });
        }
    }

    fn matched(&mut self, matched: Result<(Turn, u64), JoinError>) -> Result<(), Error> {
        // A matcher that failed is restarted with the whole part, from the checkpoint.
        let (turn, through) = matched?;
        self.queues.matched(turn, through);
        Ok(())
    }

    /// Sets off the workflows that are due by the clock. Organizations do not wait for each other:
    /// one may have many workflows due, or be held back by the log.
    fn fire(&mut self) {
        let now = self.matcher.clock.now();
        let mut by_org: HashMap<OrgId, DueCommits> = HashMap::new();
        while let Some(timer) = self.timers.pop_due(now) {
            let (due, org) = (timer.due, timer.org.clone());
            let scheduled = self
                .matcher
                .read(|index| index.workflows.scheduled(&org, &timer.workflow));
            let Some(scheduled) = scheduled else {
                continue;
            };
            if !self.leases.owns(partition_of(org.as_str())) {
                self.timers.put_off(timer, now);
                continue;
            }
            // Another version may have another schedule.
            let is_still_due = scheduled.schedule.last_at(due) == Some(due);
            if is_still_due && due > scheduled.saved_at {
                let DueCommits { triggers, notices } = by_org.entry(org.clone()).or_default();
                if self.matcher.open_runs.is_full(&org, triggers.len()) {
                    notices.extend(self.matcher.too_many_open_at(&org, &scheduled, due));
                } else {
                    triggers.push(self.matcher.triggered_by_clock(&org, &scheduled, due));
                }
            }
            self.timers.go_on(&org, &scheduled, now);
        }
        for (org, DueCommits { triggers, notices }) in by_org {
            let (matcher, turns) = (Arc::clone(&self.matcher), self.firing_turns.clone());
            self.firing.spawn(async move {
                let _turn = turns.enter(org).await;
                matcher.append(triggers, measure::triggered).await;
                matcher.append(notices, || {}).await;
            });
        }
    }

    /// Saves what has changed since the last time, unless a save is still in progress.
    fn save(&mut self) {
        measure::matching(self.queues.len(), self.queues.held_bytes());
        if !self.saving.is_under_way() {
            self.saving.begin(self.checkpoints_now());
        }
    }

    fn checkpoints_now(&self) -> Vec<(u16, TriggerCheckpoint)> {
        let mut checkpoints = Vec::new();
        let partition_of = |org: &OrgId| partition_of(org.as_str());
        let mut causes = self.matcher.cause_counts().notes(partition_of);
        let mut waits = self
            .matcher
            .read(|index| index.waits.sequences(partition_of));
        for (partition, folded_to) in self.partitions.served() {
            if !self.leases.owns(*partition) {
                continue;
            }
            let through = self.queues.through(*partition).unwrap_or(*folded_to);
            let waits = waits.remove(partition).unwrap_or_default();
            let causes = causes.remove(partition).unwrap_or_default();
            let checkpoint = TriggerCheckpoint::new(through, &waits, causes);
            checkpoints.push((*partition, checkpoint));
        }
        checkpoints
    }
}

async fn next_batch(tail: &mut Option<Follower>) -> Result<Batch, event_log::TailError> {
    match tail {
        Some(tail) => tail.next(EVENTS_AT_ONCE).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
