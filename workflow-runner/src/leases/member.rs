//! One process among those that share the partitions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::kv::{self, Entry};
use bytes::Bytes;
use event_log::{Bucket, Error, EventLog};
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use futures::{Stream, StreamExt as _};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

use super::mirror::{Holder, Mirror, partition_key};
use super::moment::Moment;
use super::share::share;
use super::state::LeaseState;

/// The buckets of heartbeats and of partition owners.
const MEMBERS: &str = "runner-members";
const PARTITIONS: &str = "runner-partitions";
/// Heartbeats within one `ttl`.
const HEARTBEATS: u32 = 4;
/// How long a planned handover waits for work in progress.
const HANDING_OVER: Duration = Duration::from_secs(10);
const HANDING_OVER_LOOK: Duration = Duration::from_millis(50);
const AGAIN: Duration = Duration::from_millis(200);

/// Sends heartbeats independently of everything else: nothing slow may hold them up.
pub(super) struct Heartbeats {
    id: String,
    ttl: Duration,
    members: Bucket,
    state: Arc<LeaseState>,
}

impl Heartbeats {
    pub(super) async fn send(self, stop: CancellationToken) {
        let mut due = interval(self.ttl / HEARTBEATS);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut under_way = FuturesUnordered::new();
        loop {
            tokio::select! {
                // A slow heartbeat does not keep the next from being sent.
                _ = due.tick() => under_way.push(self.send_one()),
                Some(()) = under_way.next() => {}
                // A heartbeat after the goodbye would look like a return.
                () = stop.cancelled() => return,
            }
            self.state.lapse_if_due();
        }
    }

    async fn send_one(&self) {
        let sent = Moment::now();
        let put = self.members.put(&self.id, sent.write());
        if let Ok(Ok(_)) = timeout(self.ttl, put).await {
            self.state.renew(sent, self.ttl);
        }
    }
}

/// Follows the other members and keeps the shares even.
pub(super) struct Member {
    id: String,
    ttl: Duration,
    members: Bucket,
    partitions: Bucket,
    mirror: Mirror,
    state: Arc<LeaseState>,
    /// Partitions with a pending claim, with the revision and the lapses when it was made: a late
    /// answer may still arrive through the bucket.
    reached_for: BTreeMap<u16, (u64, u64)>,
}

enum Change {
    Member(Entry),
    Partition(Entry),
}

impl Member {
    pub(super) async fn join(
        log: &EventLog,
        ttl: Duration,
        state: Arc<LeaseState>,
    ) -> Result<(Self, Heartbeats), Error> {
        // Heartbeats of dead members expire on their own, long after everyone has noticed.
        let kept = (ttl * 20).max(Duration::from_mins(1));
        let members = log.bucket(MEMBERS, Some(kept)).await?;
        let partitions = log.bucket(PARTITIONS, None).await?;
        let id = Uuid::new_v4().simple().to_string();
        let heartbeats = Heartbeats {
            id: id.clone(),
            ttl,
            members: members.clone(),
            state: Arc::clone(&state),
        };
        let member = Self {
            id,
            ttl,
            members,
            partitions,
            mirror: Mirror::default(),
            state,
            reached_for: BTreeMap::new(),
        };
        Ok((member, heartbeats))
    }

    pub(super) async fn run(mut self, stop: CancellationToken, _stopped: DropGuard) {
        loop {
            let fault = tokio::select! {
                () = stop.cancelled() => break,
                fault = self.follow() => fault,
            };
            tracing::debug!(fault, "Lost contact with the other runners; reconnecting");
            tokio::select! {
                () = stop.cancelled() => break,
                () = sleep(AGAIN) => {}
            }
        }
        self.leave().await;
    }

    /// Follows the buckets until that fails.
    async fn follow(&mut self) -> String {
        self.mirror.begin_again();
        let mut changes = match self.watch().await {
            Ok(changes) => changes,
            Err(fault) => return fault,
        };
        let began = Moment::now();
        let mut look = interval(self.ttl / HEARTBEATS);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let handing_over = self.state.is_leaving();
            tokio::select! {
                change = changes.next() => match change {
                    Some(Ok(change)) => self.take(&change),
                    Some(Err(fault)) => return fault,
                    None => return "the watch ended".to_owned(),
                },
                _ = look.tick() => {
                    let heard = self.mirror.heard().unwrap_or(began);
                    if Moment::now().since(heard) > self.ttl * 2 {
                        return "own heartbeats do not come back".to_owned();
                    }
                }
                () = sleep(HANDING_OVER_LOOK), if handing_over => {}
            }
            self.settle().await;
        }
    }

    async fn watch(
        &self,
    ) -> Result<impl Stream<Item = Result<Change, String>> + Unpin + use<>, String> {
        let fault = |error: kv::WatchError| error.to_string();
        // Including current entries: `watch_all` would report only changes, and a partition's
        // holder does not change once all members are dead.
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
            Change::Partition(entry) => {
                if let Some(partition) = self.mirror.take_partition(entry) {
                    self.notice_gain(partition);
                }
            }
        }
    }

    /// Gains a partition whose claim reached the bucket although the answer was lost.
    fn notice_gain(&mut self, partition: u16) {
        let Some((revision, lapses)) = self.reached_for.get(&partition).copied() else {
            return;
        };
        let holder = self.mirror.holder(partition);
        if holder.is_some_and(|holder| holder.revision > revision && holder.member == self.id) {
            self.reached_for.remove(&partition);
            self.state.gain(partition, lapses);
        }
    }

    /// Moves ownership towards the due share.
    async fn settle(&mut self) {
        let (mirror, id) = (&self.mirror, &self.id);
        self.state.keep(|partition| {
            let holder = mirror.holder(partition);
            holder.is_none_or(|holder| holder.member == *id)
        });
        let alive = self.mirror.alive(self.ttl);
        let Some(place) = alive.iter().position(|member| *member == self.id) else {
            return;
        };
        let due = share(usize::from(self.state.partitions()), alive.len(), place);
        let mut free = self.free(&alive);
        // Each starts at a different place, so that they rarely claim the same one.
        let begin = place * free.len() / alive.len();
        free.rotate_left(begin);
        // Those that still name us first: as long as we are alive nobody else takes them.
        free.sort_by_key(|partition| !self.is_named_for(*partition));
        self.state
            .withdraw_beyond(due, Instant::now() + HANDING_OVER);
        self.release(self.state.may_leave()).await;
        let room = due.saturating_sub(self.state.owned_count());
        let mut beyond = free.split_off(room.min(free.len()));
        self.claim(&free).await;
        beyond.retain(|partition| self.is_named_for(*partition));
        self.release(beyond).await;
    }

    /// Whether the bucket names us as the holder, even if from before our leases expired.
    fn is_named_for(&self, partition: u16) -> bool {
        let holder = self.mirror.holder(partition);
        holder.is_some_and(|holder| holder.member == self.id)
    }

    /// Partitions that no live member holds, or that name us and that we do not own.
    fn free(&self, alive: &[&str]) -> Vec<u16> {
        let is_free = |partition: &u16| {
            let holder = self.mirror.holder(*partition);
            let held = holder.is_some_and(|holder| {
                holder.member != self.id && alive.contains(&holder.member.as_str())
            });
            !held && self.state.is_strange(*partition)
        };
        (0..self.state.partitions()).filter(is_free).collect()
    }

    async fn claim(&mut self, wanted: &[u16]) {
        let lapses = self.state.lapses();
        for partition in wanted {
            let known = self.mirror.holder(*partition);
            let revision = known.map_or(0, |holder| holder.revision);
            self.reached_for.insert(*partition, (revision, lapses));
        }
        for (partition, changed) in self.change(wanted, &self.id).await {
            match changed {
                Ok(revision) => {
                    self.mirror.changed(partition, &self.id, revision);
                    self.reached_for.remove(&partition);
                    self.state.gain(partition, lapses);
                }
                Err(holder) => {
                    self.mirror.learn(partition, holder);
                    self.notice_gain(partition);
                }
            }
        }
    }

    async fn release(&mut self, partitions: Vec<u16>) {
        for (partition, changed) in self.change(&partitions, "").await {
            match changed {
                Ok(revision) => {
                    self.mirror.changed(partition, "", revision);
                    self.state.left(partition);
                }
                Err(holder) => self.mirror.learn(partition, holder),
            }
        }
    }

    /// Sets the holder of partitions, each only if it has not changed meanwhile; returns the new
    /// revisions, or the current holders where that failed. The watch may be on a copy of the
    /// bucket that no longer receives updates, so the leader is asked.
    async fn change(&self, partitions: &[u16], member: &str) -> Vec<(u16, Result<u64, Holder>)> {
        let changes = partitions.iter().map(|partition| async {
            let known = self.mirror.holder(*partition);
            let revision = known.map_or(0, |holder| holder.revision);
            let value = Bytes::copy_from_slice(member.as_bytes());
            let key = partition_key(*partition);
            let changed = self.partitions.update(&key, value, revision);
            if let Ok(Ok(revision)) = timeout(self.ttl, changed).await {
                return Some((*partition, Ok(revision)));
            }
            let newest = timeout(self.ttl, self.partitions.newest(&key)).await;
            let (member, revision) = newest.ok()?.ok()??;
            let member = String::from_utf8_lossy(&member).into_owned();
            Some((*partition, Err(Holder { member, revision })))
        });
        join_all(changes).await.into_iter().flatten().collect()
    }

    /// Leaves the group: what is held goes to the others at once.
    async fn leave(mut self) {
        let held = self.state.withdraw_all();
        let max_wait = self.ttl;
        let goodbye = async {
            self.release(held).await;
            let _ = self.members.delete(&self.id).await;
        };
        let _ = timeout(max_wait, goodbye).await;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::log;
    use super::*;

    #[tokio::test]
    async fn a_claim_that_went_by_old_news_is_made_again_by_the_leaders_word() {
        let state = Arc::new(LeaseState::new(4));
        let joined = Member::join(&log().await, Duration::from_secs(5), state).await;
        let (mut member, _heartbeats) = joined.unwrap();
        // Another member had it and gave it up, which the watch has not reported.
        for holder in ["another", ""] {
            let put = member.partitions.put(partition_key(2), holder.into());
            put.await.unwrap();
        }
        assert_eq!(member.mirror.holder(2), None);
        member.state.renew(Moment::now(), Duration::from_mins(1));
        member.claim(&[2]).await;
        assert_eq!(member.state.owned_count(), 0);
        assert_eq!(member.mirror.holder(2).unwrap().member, "");
        member.claim(&[2]).await;
        assert_eq!(member.state.owned_count(), 1);
        assert!(member.is_named_for(2));
        member.release(vec![2]).await;
        assert!(!member.is_named_for(2));
    }
}
