//! What the buckets say, as last heard.

use std::collections::HashMap;
use std::time::Duration;

use async_nats::jetstream::kv::{Entry, Operation};
use tokio::time::Instant;

/// The newest entries of both buckets.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    /// When each member sent its last heartbeat, in nanoseconds of the server's clock.
    heartbeats: HashMap<String, i128>,
    partitions: HashMap<u16, Holder>,
    /// The own last heartbeat that came back, and when it did.
    own: Option<(i128, Instant)>,
    /// Whether all heartbeats from before have been told.
    current: bool,
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
        self.current |= entry.seen_current;
        if entry.operation != Operation::Put {
            self.heartbeats.remove(&entry.key);
            return;
        }
        let heartbeat = entry.created.unix_timestamp_nanos();
        if entry.key == own_id {
            self.own = Some((heartbeat, Instant::now()));
        }
        self.heartbeats.insert(entry.key.clone(), heartbeat);
    }

    /// Says which partition the entry was about.
    pub(super) fn take_partition(&mut self, entry: &Entry) -> Option<u16> {
        let number = entry.key.strip_prefix(PARTITION);
        let partition = number.and_then(|number| number.parse().ok())?;
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
        Some(partition)
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

    /// When the own last heartbeat came back: a mirror that no longer hears it hears nothing.
    pub(super) fn heard(&self) -> Option<Instant> {
        self.own.map(|(_, heard)| heard)
    }

    /// Those who had sent a heartbeat within `ttl` when the own last one was sent, in order. They
    /// come back in the order in which the server got them, so those of all others before it are
    /// known. Empty as long as there is no own heartbeat to judge by.
    pub(super) fn alive(&self, ttl: Duration) -> Vec<&str> {
        let (Some((now, _)), true) = (self.own, self.current) else {
            return Vec::new();
        };
        let ttl = i128::try_from(ttl.as_nanos()).unwrap_or(i128::MAX);
        let heartbeats = self
            .heartbeats
            .iter()
            .filter(|(_, heartbeat)| now - **heartbeat < ttl);
        let mut alive: Vec<&str> = heartbeats.map(|(member, _)| member.as_str()).collect();
        alive.sort_unstable();
        alive
    }

    /// Forgets what a new watch will tell again.
    pub(super) fn begin_again(&mut self) {
        self.heartbeats.clear();
        self.own = None;
        self.current = false;
    }
}
