//! Geofences: records when a person enters or leaves a place that one of their circles watches.
//!
//! Persons are split into partitions, each served by one process at a time. Which positions count
//! follows from the log alone ([`recent`]). A crossing is appended to the stream of its person and
//! place after the one before it, so a second attempt to record it finds it recorded.
//!
//! What the log does not take from an organization at present is deferred ([`deferred`]) and
//! considered [`again`], so that no organization holds up another. A checkpoint ends before what
//! waits there.

mod again;
mod checkpoint;
mod crossings;
mod deferred;
mod in_order;
mod past;
mod recent;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use event_log::{Batch, EventLog, Follower, ReadError, TailError};
use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use schemas::{AccountId, Event, Log};
use service::Clock;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use crate::checkpoints::{Checkpoints, Kind, SPREAD, Saving};
use crate::leases::{LeaseGuard, Leases, Owned, OwnedPartitions, partition_of};
use crate::people::People;
use crate::retry::retry_while;
use crate::task::Task;
use again::{Ended, ROUNDS, Rounds};
use checkpoint::Through;
use crossings::Crossings;
use deferred::{DeferredPosition, DeferredPositions};
use in_order::go_through;
use recent::{Fresh, Recent};

pub use settings::GeofenceSettings;

/// Positions taken at a time.
const BATCH: usize = 1_000;
/// Positions considered before yielding to other work.
const AT_ONCE: usize = 256;
const CHECKPOINT_EVERY: Duration = Duration::from_secs(1);

/// Dependencies of the geofence.
#[derive(Clone)]
pub struct Dependencies {
    /// The event log.
    pub log: EventLog,
    /// Who is in which circle.
    pub people: People,
    /// The partitions whose positions are considered here.
    pub leases: Leases,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The settings.
    pub settings: GeofenceSettings,
}

/// Why watching could not start or ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The checkpoints' bucket could not be created, or the leases could not be started.
    #[error(transparent)]
    Log(#[from] event_log::Error),
    /// The log does not answer.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The log cannot be followed.
    #[error(transparent)]
    Tail(#[from] TailError),
}

/// Records crossings until `shutdown`, together with every other process that does.
pub async fn run(dependencies: Dependencies, shutdown: CancellationToken) -> Result<(), Error> {
    let Dependencies {
        log,
        people,
        clock,
        leases,
        settings,
    } = dependencies;
    let checkpoints = Checkpoints::open(&log, Kind::Geofence).await?;
    // From here on, unless a partition is gained in which others have come less far.
    let end = log.end(Log::Locations).await?.sequence();
    let watching = Geofence {
        tail: log.follow(Log::Locations, end, &[]).await?,
        log: log.clone(),
        owned: leases.owned(),
        crossings: Arc::new(Crossings::new(
            log,
            people.clone(),
            clock,
            settings.margin_m,
        )),
        people,
        leases,
        saving: Saving::new(checkpoints, SPREAD),
        recent: Recent::after(end),
        through: OwnedPartitions::default(),
        deferred: DeferredPositions::default(),
        rounds: FuturesUnordered::new(),
    };
    Ok(Box::pin(watching.run(shutdown)).await?)
}

struct Geofence {
    tail: Follower,
    log: EventLog,
    people: People,
    leases: Leases,
    owned: watch::Receiver<Owned>,
    saving: Saving<Through>,
    crossings: Arc<Crossings>,
    recent: Recent,
    /// How far each of our partitions has been considered, apart from what is deferred.
    through: OwnedPartitions<u64>,
    deferred: DeferredPositions,
    /// What is deferred, being considered again.
    rounds: FuturesUnordered<Task<Ended>>,
}

impl Geofence {
    async fn run(mut self, shutdown: CancellationToken) -> Result<(), TailError> {
        // A position waiting for an answer is cut off: it is considered again at the next start.
        let ended = shutdown.run_until_cancelled(Box::pin(self.watch())).await;
        self.saving.finish(self.checkpoints()).await;
        ended.map_or(Ok(()), Err)
    }

    async fn watch(&mut self) -> TailError {
        let mut checkpoint = interval(CHECKPOINT_EVERY);
        checkpoint.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.change_ownership().await;
        loop {
            let is_due = self.tail.caught_up() || self.recent.is_full();
            let more = is_due && !self.deferred.is_full() && self.consider().await;
            self.begin_rounds();
            tokio::select! {
                Ok(()) = self.owned.changed() => self.change_ownership().await,
                _ = checkpoint.tick() => self.save(),
                () = self.saving.ended() => {}
                Some(ended) = self.rounds.next() => {
                    self.deferred.ended(&ended.org, &ended.considered);
                }
                batch = self.tail.next(BATCH), if !self.recent.is_full() => match batch {
                    Ok(batch) => self.take(batch).await,
                    Err(error) => return error,
                },
                () = sleep(Duration::ZERO), if more => {}
            }
        }
    }

    async fn take(&mut self, batch: Batch) {
        self.learn_past(&batch).await;
        let last = batch.last_sequence;
        for recorded in batch.into_readable("places") {
            let Event::LocationUpdated(updated) = &recorded.event else {
                continue;
            };
            let partition = partition_of_person(updated.user_id);
            if let Some(through) = self.through.get(partition) {
                let is_due = *through < recorded.sequence;
                self.recent.take(recorded, is_due.then_some(partition));
            }
        }
        self.recent.reached(last);
    }

    /// Continues where others left off in partitions that are gained. Where they have come less far
    /// than this process, positions are taken from the log again from there.
    async fn change_ownership(&mut self) {
        let owned = self.owned.borrow_and_update().clone();
        let changed = self.through.change(&owned);
        self.saving.retain(&owned);
        // What was recorded meanwhile in a partition that is ours again is not in memory.
        self.crossings.begin_again();
        let mut after = self.recent.head();
        let gained = !changed.gained.is_empty();
        for partition in changed.gained {
            let noted = self.saving.checkpoints().read(partition).await;
            let Through(through) = noted.unwrap_or_default();
            if self
                .through
                .serve(partition, changed.round, through)
                .is_ok()
            {
                after = after.min(through);
            }
        }
        let through = &self.through;
        let is_ours = |account| through.serves(partition_of_person(account));
        self.recent.retain(is_ours, gained);
        self.deferred.retain(|partition| through.serves(partition));
        if after < self.recent.head() {
            let follow = || self.log.follow(Log::Locations, after, &[]);
            // Every failure here is temporary.
            if let Ok(tail) = retry_while(follow, |_| true).await {
                self.tail = tail;
                self.recent.rewind(after);
            }
        }
        self.drop_considered();
    }

    /// Considers positions of our partitions in log order; returns whether there are more.
    async fn consider(&mut self) -> bool {
        let held = self.through.served().iter();
        let held: BTreeMap<u16, u64> = held
            .filter(|(partition, _)| self.leases.owns(**partition))
            .map(|(partition, through)| (*partition, *through))
            .collect();
        let after = held.values().min().copied();
        let Some(after) = after.filter(|after| *after < self.recent.head()) else {
            return false;
        };
        let ours = |fresh: &&Fresh| {
            let through = held.get(&fresh.partition);
            through.is_some_and(|through| fresh.recorded.sequence > *through)
        };
        let due: Vec<Fresh> = self
            .recent
            .behind(after)
            .filter(ours)
            .take(AT_ONCE)
            .cloned()
            .collect();
        let last = due.last().map(|fresh| fresh.recorded.sequence);
        let (more, through) = match last.filter(|_| due.len() == AT_ONCE) {
            Some(last) => (true, last),
            None => (false, self.recent.head()),
        };
        let (passed, deferred) = self.pass(held.into_keys(), due).await;
        for (partition, reached) in self.through.served_mut() {
            if passed.contains(&partition) {
                *reached = through.max(*reached);
            }
        }
        for one in deferred {
            if passed.contains(&one.partition) {
                self.deferred.push(one);
            }
        }
        self.drop_considered();
        more
    }

    fn drop_considered(&mut self) {
        let through = &self.through;
        self.recent.drop_unless(|fresh| {
            let through = through.get(fresh.partition);
            through.is_some_and(|through| *through < fresh.recorded.sequence)
        });
    }

    /// Considers positions, those of different persons concurrently. Returns the partitions that
    /// were certainly ours meanwhile, and the positions to be deferred.
    async fn pass(
        &self,
        partitions: impl Iterator<Item = u16>,
        due: Vec<Fresh>,
    ) -> (BTreeSet<u16>, Vec<DeferredPosition>) {
        let guards: BTreeMap<u16, LeaseGuard> = partitions
            .filter_map(|partition| Some((partition, self.leases.guard(partition)?)))
            .collect();
        if !due.is_empty() {
            self.people.settle().await;
        }
        let mut persons: BTreeMap<AccountId, Vec<Fresh>> = BTreeMap::new();
        for fresh in due {
            if let (Event::LocationUpdated(updated), true) =
                (&fresh.recorded.event, guards.contains_key(&fresh.partition))
            {
                persons.entry(updated.user_id).or_default().push(fresh);
            }
        }
        let considering = persons
            .iter()
            .map(|(account, positions)| self.consider_one(*account, positions));
        let deferred = join_all(considering).await.into_iter().flatten();
        let valid = guards.into_iter().filter(|(_, guard)| guard.is_valid());
        let valid = valid.map(|(partition, _)| partition);
        (valid.collect(), deferred.collect())
    }

    /// Considers a person's positions in order; returns those to be deferred.
    async fn consider_one(&self, account: AccountId, positions: &[Fresh]) -> Vec<DeferredPosition> {
        let waiting = self.deferred.of(account);
        let deferred = go_through(&*self.crossings, positions, waiting).await;
        let partition = partition_of_person(account);
        let deferred = deferred
            .into_iter()
            .map(|(org, sequence)| DeferredPosition {
                org,
                account,
                partition,
                sequence,
            });
        deferred.collect()
    }

    /// Considers again what was deferred.
    fn begin_rounds(&mut self) {
        while self.rounds.len() < ROUNDS
            && let Some(round) = self.deferred.next()
        {
            let rounds = Rounds {
                log: self.log.clone(),
                crossings: Arc::clone(&self.crossings),
                leases: self.leases.clone(),
            };
            self.rounds.push(Task::spawn(rounds.carry_out(round)));
        }
    }

    /// Saves how far our partitions have come, unless a save is still in progress.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a gauge is a float; this stays small"
    )]
    fn save(&mut self) {
        let held = self.recent.bytes() + self.deferred.bytes();
        metrics::gauge!("waypost_places_held_bytes").set(held as f64);
        if !self.saving.is_under_way() {
            self.saving.begin(self.checkpoints());
        }
    }

    /// The sequence up to which everything of each of our partitions has been considered.
    fn checkpoints(&self) -> Vec<(u16, Through)> {
        let firsts = self.deferred.firsts();
        let through = self.through.served().iter();
        let checkpoints = through.map(|(partition, through)| {
            let before_first = firsts.get(partition).map(|first| first - 1);
            let through = before_first.map_or(*through, |before| before.min(*through));
            (*partition, Through(through))
        });
        checkpoints.collect()
    }
}

fn partition_of_person(account: AccountId) -> u16 {
    partition_of(&account.to_string())
}
