//! One process among those who share the partitions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::kv::{self, Entry};
use bytes::Bytes;
use event_log::{Error, EventLog};
use futures::future::join_all;
use futures::{Stream, StreamExt as _};
use tokio::sync::watch;
use tokio::time::{Instant, interval, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

use super::mirror::{Mirror, partition_key};
use super::share::share;
use super::{Owned, Shared};

/// Signs of life within one `ttl`.
const SIGNS: u32 = 3;
/// The part of `ttl` by which an owner stops before others may begin.
const MARGIN: u32 = 6;
/// How long a planned handing over waits for work under way.
const HANDING_OVER: Duration = Duration::from_secs(10);
const HANDING_OVER_LOOK: Duration = Duration::from_millis(50);
const AGAIN: Duration = Duration::from_millis(200);

pub(super) struct Member {
    name: String,
    id: String,
    ttl: Duration,
    members: kv::Store,
    partitions: kv::Store,
    mirror: Mirror,
    shared: Arc<Shared>,
    publish: watch::Sender<Owned>,
    owned: BTreeSet<u16>,
    /// Partitions on their way to somebody else, and when they go at the latest.
    leaving: BTreeMap<u16, Instant>,
}

enum Change {
    Member(Entry),
    Partition(Entry),
}

impl Member {
    pub(super) async fn join(
        log: &EventLog,
        name: &str,
        ttl: Duration,
        shared: Arc<Shared>,
        publish: watch::Sender<Owned>,
    ) -> Result<Self, Error> {
        // Signs of the dead vanish by themselves, long after everybody has noticed.
        let kept = (ttl * 20).max(Duration::from_mins(1));
        let members = log.bucket(&format!("{name}-members"), Some(kept)).await?;
        let partitions = log.bucket(&format!("{name}-partitions"), None).await?;
        Ok(Self {
            name: name.to_owned(),
            id: Uuid::new_v4().simple().to_string(),
            ttl,
            members,
            partitions,
            mirror: Mirror::default(),
            shared,
            publish,
            owned: BTreeSet::new(),
            leaving: BTreeMap::new(),
        })
    }

    pub(super) async fn run(mut self, stop: CancellationToken, _stopped: DropGuard) {
        loop {
            let fault = tokio::select! {
                () = stop.cancelled() => break,
                fault = self.follow() => fault,
            };
            tracing::debug!(
                name = self.name,
                fault,
                "Leases lost sight of each other, looking again"
            );
            tokio::select! {
                () = stop.cancelled() => break,
                () = sleep(AGAIN) => self.lapse(),
            }
        }
        self.leave().await;
    }

    /// Gives signs of life and follows the buckets until that fails.
    async fn follow(&mut self) -> String {
        self.mirror.begin_again();
        let mut changes = match self.watch().await {
            Ok(changes) => changes,
            Err(fault) => return fault,
        };
        let mut sign = interval(self.ttl / SIGNS);
        sign.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let handing_over = !self.leaving.is_empty();
            tokio::select! {
                change = changes.next() => match change {
                    Some(Ok(change)) => self.take(&change),
                    Some(Err(fault)) => return fault,
                    None => return "the watch ended".to_owned(),
                },
                _ = sign.tick() => {
                    self.give_sign().await;
                    if self.mirror.deaf_for().is_some_and(|time| time > self.ttl) {
                        return "own signs do not come back".to_owned();
                    }
                }
                () = sleep(HANDING_OVER_LOOK), if handing_over => {}
            }
            self.lapse();
            self.settle().await;
        }
    }

    async fn watch(
        &self,
    ) -> Result<impl Stream<Item = Result<Change, String>> + Unpin + use<>, String> {
        let fault = |error: kv::WatchError| error.to_string();
        // With what was there before: `watch_all` would tell only of changes, and who holds a
        // partition does not change once all are dead.
        let everything = ">";
        let partitions = self.partitions.watch_with_history(everything).await;
        let partitions = partitions.map_err(fault)?;
        let members = self.members.watch_with_history(everything).await;
        let members = members.map_err(fault)?;
        let partitions = partitions.map(|entry| entry.map(Change::Partition));
        let members = members.map(|entry| entry.map(Change::Member));
        let both = futures::stream::select(partitions, members);
        Ok(both.map(|change| change.map_err(|error| error.to_string())))
    }

    fn take(&mut self, change: &Change) {
        match change {
            Change::Member(entry) => self.mirror.take_member(entry, &self.id),
            Change::Partition(entry) => self.mirror.take_partition(entry),
        }
    }

    async fn give_sign(&mut self) {
        let sent = Instant::now();
        let put = self.members.put(&self.id, Bytes::from_static(b"alive"));
        let Ok(Ok(_)) = timeout(self.ttl / SIGNS, put).await else {
            return;
        };
        // What has run out meanwhile must be won again, not prolonged.
        self.lapse();
        self.shared
            .valid_until
            .send_replace(sent + self.ttl - self.ttl / MARGIN);
    }

    /// Lets go of everything once the leases have run out.
    fn lapse(&mut self) {
        let out = !self.shared.is_current();
        if out && !(self.owned.is_empty() && self.leaving.is_empty()) {
            tracing::warn!(name = self.name, "Leases ran out");
            let lost = std::mem::take(&mut self.owned);
            let leaving = std::mem::take(&mut self.leaving);
            for partition in lost.into_iter().chain(leaving.into_keys()) {
                self.shared.lose(partition);
            }
            self.publish();
        }
    }

    /// Brings what is owned towards what should be.
    async fn settle(&mut self) {
        self.drop_lost();
        let alive = self.mirror.alive(self.ttl);
        let Some(place) = alive.iter().position(|member| *member == self.id) else {
            return;
        };
        let due = share(usize::from(self.shared.partitions), alive.len(), place);
        let mut free = self.free(&alive);
        // Each begins at another place, so that they seldom reach for the same.
        let begin = place * free.len() / alive.len();
        free.rotate_left(begin);
        while self.owned.len() > due {
            if let Some(partition) = self.owned.pop_last() {
                let latest = Instant::now() + HANDING_OVER;
                self.leaving.insert(partition, latest);
            }
        }
        self.publish();
        self.hand_over().await;
        free.truncate(due.saturating_sub(self.owned.len()));
        self.claim(&free).await;
    }

    /// Partitions that others have taken are theirs.
    fn drop_lost(&mut self) {
        let (mirror, id, shared) = (&self.mirror, &self.id, &self.shared);
        let ours = |partition: &u16| {
            let holder = mirror.holder(*partition);
            let ours = holder.is_none_or(|holder| holder.member == *id);
            if !ours {
                shared.lose(*partition);
            }
            ours
        };
        self.owned.retain(ours);
        self.leaving.retain(|partition, _| ours(partition));
    }

    /// Partitions that nobody alive holds, or that we hold from before our leases ran out.
    fn free(&self, alive: &[&str]) -> Vec<u16> {
        let is_free = |partition: &u16| {
            !self.owned.contains(partition)
                && !self.leaving.contains_key(partition)
                && self.mirror.holder(*partition).is_none_or(|holder| {
                    holder.member == self.id || !alive.contains(&holder.member.as_str())
                })
        };
        (0..self.shared.partitions).filter(is_free).collect()
    }

    async fn claim(&mut self, wanted: &[u16]) {
        for (partition, revision) in self.change(wanted, &self.id).await {
            self.mirror.changed(partition, &self.id, revision);
            self.owned.insert(partition);
        }
        self.lapse();
        self.publish();
    }

    /// Gives up what is leaving and no longer worked on.
    async fn hand_over(&mut self) {
        let now = Instant::now();
        let ended: Vec<u16> = self
            .leaving
            .iter()
            .filter(|(partition, latest)| !self.shared.is_held(**partition) || **latest <= now)
            .map(|(partition, _)| *partition)
            .collect();
        self.release(&ended).await;
    }

    async fn release(&mut self, partitions: &[u16]) {
        for partition in partitions {
            self.shared.lose(*partition);
        }
        for (partition, revision) in self.change(partitions, "").await {
            self.mirror.changed(partition, "", revision);
            self.leaving.remove(&partition);
        }
    }

    /// Names the holder of partitions, each only if nobody else has meanwhile; answers with the
    /// new revisions of those where that went well.
    async fn change(&self, partitions: &[u16], member: &str) -> Vec<(u16, u64)> {
        let changes = partitions.iter().map(|partition| async {
            let known = self.mirror.holder(*partition);
            let revision = known.map_or(0, |holder| holder.revision);
            let value = Bytes::copy_from_slice(member.as_bytes());
            let key = partition_key(*partition);
            let changed = self.partitions.update(key, value, revision);
            let changed = timeout(self.ttl / SIGNS, changed).await;
            changed.ok()?.ok().map(|revision| (*partition, revision))
        });
        join_all(changes).await.into_iter().flatten().collect()
    }

    /// Says goodbye: what is held goes to the others at once.
    async fn leave(mut self) {
        let held: Vec<u16> = self
            .owned
            .iter()
            .chain(self.leaving.keys())
            .copied()
            .collect();
        self.owned.clear();
        self.publish();
        if self.shared.is_current() {
            let patience = self.ttl;
            let goodbye = async {
                self.release(&held).await;
                let _ = self.members.delete(&self.id).await;
            };
            let _ = timeout(patience, goodbye).await;
        }
        self.shared.valid_until.send_replace(Instant::now());
    }

    fn publish(&self) {
        self.publish.send_if_modified(|published| {
            let changed = **published != self.owned;
            if changed {
                *published = Arc::new(self.owned.clone());
            }
            changed
        });
        let owned = u32::try_from(self.owned.len()).unwrap_or(u32::MAX);
        metrics::gauge!("waypost_leases_owned", "work" => self.name.clone()).set(owned);
    }
}
