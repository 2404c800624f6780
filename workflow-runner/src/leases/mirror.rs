//! The contents of the buckets, as last heard.

use std::collections::HashMap;
use std::time::Duration;

use async_nats::jetstream::kv::{Entry, Operation};

use super::moment::Moment;

/// The newest entries of both buckets.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    /// When each member's last heartbeat was heard here.
    heartbeats: HashMap<String, Moment>,
    partitions: HashMap<u16, Holder>,
    own: Option<Own>,
    /// Whether all earlier heartbeats have been delivered.
    current: bool,
}

/// The last own heartbeat that came back.
#[derive(Clone, Copy, Debug)]
struct Own {
    sent: Moment,
    heard: Moment,
}

/// Who holds a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    /// Empty where it was given up.
    pub(super) member: String,
    /// The entry's revision, needed to change it.
    pub(super) revision: u64,
}

const PARTITION: &str = "p-";

pub(super) fn partition_key(partition: u16) -> String {
    format!("{PARTITION}{partition}")
}

impl Mirror {
    pub(super) fn take_member(&mut self, entry: &Entry, own_id: &str) {
        self.current |= entry.seen_current;
        if entry.operation != Operation::Put {
            self.heartbeats.remove(&entry.key);
            return;
        }
        let own = (entry.key == own_id).then(|| Moment::read(&entry.value));
        self.hear(&entry.key, own.flatten(), Moment::now());
    }

    /// Records a member's heartbeat; `sent` is known of own ones.
    fn hear(&mut self, member: &str, sent: Option<Moment>, heard: Moment) {
        if let Some(sent) = sent {
            self.own = Some(Own { sent, heard });
        }
        self.heartbeats.insert(member.to_owned(), heard);
    }

    /// Takes in an entry and returns its partition.
    pub(super) fn take_partition(&mut self, entry: &Entry) -> Option<u16> {
        let number = entry.key.strip_prefix(PARTITION);
        let partition = number.and_then(|number| number.parse().ok())?;
        let member = match entry.operation {
            Operation::Put => String::from_utf8_lossy(&entry.value).into_owned(),
            Operation::Delete | Operation::Purge => String::new(),
        };
        let revision = entry.revision;
        self.learn(partition, Holder { member, revision });
        Some(partition)
    }

    /// Records who holds a partition; older revisions than the known one change nothing.
    pub(super) fn learn(&mut self, partition: u16, newer: Holder) {
        let known = self.partitions.entry(partition).or_insert(newer.clone());
        if known.revision < newer.revision {
            *known = newer;
        }
    }

    /// Records an own change before the bucket reports it.
    pub(super) fn changed(&mut self, partition: u16, member: &str, revision: u64) {
        let member = member.to_owned();
        self.partitions
            .insert(partition, Holder { member, revision });
    }

    pub(super) fn holder(&self, partition: u16) -> Option<&Holder> {
        self.partitions.get(&partition)
    }

    /// When the last own heartbeat came back: a mirror that no longer hears it hears nothing.
    pub(super) fn heard(&self) -> Option<Moment> {
        self.own.map(|own| own.heard)
    }

    /// The members heard since `ttl` before the last own heartbeat was sent, in order. Heartbeats
    /// arrive in the order in which the server received them, so nothing arrived in between from
    /// members not listed: only the own clock is involved. Empty until there is an own heartbeat to
    /// judge by.
    pub(super) fn alive(&self, ttl: Duration) -> Vec<&str> {
        let (Some(own), true) = (self.own, self.current) else {
            return Vec::new();
        };
        let heartbeats = self.heartbeats.iter();
        let alive = heartbeats.filter(|(_, heard)| own.sent.since(**heard) < ttl);
        let mut alive: Vec<&str> = alive.map(|(member, _)| member.as_str()).collect();
        alive.sort_unstable();
        alive
    }

    /// Forgets what a new watch delivers again.
    pub(super) fn begin_again(&mut self) {
        self.heartbeats.clear();
        self.own = None;
        self.current = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_not_heard_of_until_an_own_heartbeat_of_a_ttl_later_is_dead() {
        let began = Moment::now();
        let at = |milliseconds| began.plus(Duration::from_millis(milliseconds));
        let ttl = Duration::from_secs(1);
        let mut mirror = Mirror {
            current: true,
            ..Mirror::default()
        };
        mirror.hear("other", None, at(0));
        assert!(mirror.alive(ttl).is_empty(), "nothing to judge by");
        mirror.hear("own", Some(at(100)), at(110));
        assert_eq!(mirror.alive(ttl), ["other", "own"]);
        // A late heartbeat says nothing about the time in between.
        mirror.hear("own", Some(at(999)), at(5_000));
        assert_eq!(mirror.alive(ttl), ["other", "own"]);
        mirror.hear("own", Some(at(1_000)), at(5_010));
        assert_eq!(mirror.alive(ttl), ["own"]);
        mirror.hear("other", None, at(5_020));
        assert_eq!(mirror.alive(ttl), ["other", "own"]);
    }
}
