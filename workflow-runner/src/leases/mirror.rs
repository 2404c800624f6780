//! What the buckets say, as last heard.

use std::collections::HashMap;
use std::time::Duration;

use async_nats::jetstream::kv::{Entry, Operation};
use tokio::time::Instant;

/// The newest entries of both buckets.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    /// When each member gave its last sign of life, in nanoseconds of the server's clock.
    signs: HashMap<String, i128>,
    partitions: HashMap<u16, Holder>,
    /// The own last sign that came back, and when it did.
    own: Option<(i128, Instant)>,
}

/// Who holds a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    /// Empty where it was given up.
    pub(super) member: String,
    /// The entry's revision, to change it by.
    pub(super) revision: u64,
}

const PARTITION: &str = "p-";

pub(super) fn partition_key(partition: u16) -> String {
    format!("{PARTITION}{partition}")
}

impl Mirror {
    pub(super) fn take_member(&mut self, entry: &Entry, own_id: &str) {
        if entry.operation != Operation::Put {
            self.signs.remove(&entry.key);
            return;
        }
        let sign = entry.created.unix_timestamp_nanos();
        if entry.key == own_id {
            self.own = Some((sign, Instant::now()));
        }
        self.signs.insert(entry.key.clone(), sign);
    }

    pub(super) fn take_partition(&mut self, entry: &Entry) {
        let number = entry.key.strip_prefix(PARTITION);
        let Some(partition) = number.and_then(|number| number.parse().ok()) else {
            return;
        };
        let member = match entry.operation {
            Operation::Put => String::from_utf8_lossy(&entry.value).into_owned(),
            Operation::Delete | Operation::Purge => String::new(),
        };
        let revision = entry.revision;
        let newer = Holder { member, revision };
        let known = self.partitions.entry(partition).or_insert(newer.clone());
        if known.revision < revision {
            *known = newer;
        }
    }

    /// Notes an own change before the bucket tells of it.
    pub(super) fn changed(&mut self, partition: u16, member: &str, revision: u64) {
        let member = member.to_owned();
        self.partitions
            .insert(partition, Holder { member, revision });
    }

    pub(super) fn holder(&self, partition: u16) -> Option<&Holder> {
        self.partitions.get(&partition)
    }

    /// How long ago the own last sign came back: a mirror that no longer hears it hears nothing.
    pub(super) fn deaf_for(&self) -> Option<Duration> {
        self.own.map(|(_, heard)| heard.elapsed())
    }

    /// Those who have given a sign within `ttl`, in order; empty before the own sign has come
    /// back, which is after all signs that were there before.
    pub(super) fn alive(&self, ttl: Duration) -> Vec<&str> {
        let Some((sign, heard)) = self.own else {
            return Vec::new();
        };
        // The server's clock stands at this or later.
        let now = sign + nanos(heard.elapsed());
        let mut alive: Vec<&str> = self
            .signs
            .iter()
            .filter(|(_, sign)| now - **sign < nanos(ttl))
            .map(|(member, _)| member.as_str())
            .collect();
        alive.sort_unstable();
        alive
    }

    /// Forgets what a new watch will tell again.
    pub(super) fn begin_again(&mut self) {
        self.signs.clear();
        self.own = None;
    }
}

fn nanos(duration: Duration) -> i128 {
    i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX)
}
