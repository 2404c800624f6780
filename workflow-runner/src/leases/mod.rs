//! Divides the work: it is split into partitions, and each partition has one owner at a time.
//!
//! Two key-value buckets hold the members (`runner-members`, one key each, renewed as a heartbeat)
//! and the owners (`runner-partitions`, changed only by compare-and-set). They are for all kinds of
//! work together, so that a process sends one heartbeat for everything it does. A partition whose
//! owner has sent none for `ttl` goes to another member.
//!
//! No two clocks are compared. A member judges by its own clock, from when it heard a heartbeat to
//! when it sent one of its own that came back after all others that the server had by then. An
//! owner stops earlier by its own clock: it counts from the moment it *sent* its last acknowledged
//! heartbeat, so a process that was suspended finds its leases expired before it can act on them.
//!
//! Leases keep work from being done twice for nothing; the log's expected sequences ensure that
//! nothing is *recorded* twice.

mod member;
mod mirror;
mod moment;
mod partitions;
mod share;
mod state;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use event_log::{Error, EventLog};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use member::Member;
use state::LeaseState;

pub(crate) use partitions::{OwnedPartitions, Round};

/// Number of partitions of each kind of work; the same in every process, forever.
pub const PARTITIONS: u16 = 32;

/// A kind of work that runners share. The owner of a partition of one need not own that of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Carrying out runs, each in the partition of its id.
    Runs,
    /// Matching the events of organizations, each in the partition of its id, with their workflows.
    Triggers,
    /// Delivering to endpoints, each in the partition of its id.
    Webhooks,
    /// Recording the crossings of persons, each in the partition of their id.
    Geofence,
}

impl Work {
    const ALL: [Self; 4] = [Self::Runs, Self::Triggers, Self::Webhooks, Self::Geofence];
    const COUNT: u16 = 4;

    fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Triggers => "triggers",
            Self::Webhooks => "webhooks",
            Self::Geofence => "places",
        }
    }

    /// A partition's number among those of all kinds. The kinds alternate, so that a member with a
    /// share of all has about as many partitions of each.
    fn number(self, partition: u16) -> u16 {
        partition.saturating_mul(Self::COUNT) + self as u16
    }

    /// The partition with this number, if it is of this kind.
    fn partition(self, number: u16) -> Option<u16> {
        (number % Self::COUNT == self as u16).then_some(number / Self::COUNT)
    }
}

/// This process as one of those that share the work. Clones are the same; when the last is dropped
/// without [`Group::leave`], heartbeats stop and others take over in time.
#[derive(Clone)]
pub struct Group {
    state: Arc<LeaseState>,
    stop: CancellationToken,
    stopped: CancellationToken,
    _tasks: Arc<[AbortOnDropHandle<()>; 2]>,
}

/// The partitions of a kind of work that this process owns, out of all.
#[derive(Clone)]
pub struct Leases {
    group: Group,
    work: Work,
}

/// A set of partitions.
pub type Owned = Arc<BTreeSet<u16>>;

/// Work in progress in a partition: a planned handover waits for it, for a while.
pub struct LeaseGuard {
    state: Arc<LeaseState>,
    number: u16,
    /// The partition's loss count when the work began.
    losses: u64,
}

impl Group {
    /// Joins the others, which rely on this process as long as it sends a heartbeat within `ttl`.
    ///
    /// # Errors
    /// If the log does not answer.
    pub async fn join(log: &EventLog, ttl: Duration) -> Result<Self, Error> {
        Self::sharing(log, PARTITIONS * Work::COUNT, ttl).await
    }

    async fn sharing(log: &EventLog, partitions: u16, ttl: Duration) -> Result<Self, Error> {
        let state = Arc::new(LeaseState::new(partitions));
        let (member, heartbeats) = Member::join(log, ttl, Arc::clone(&state)).await?;
        let (stop, stopped) = (CancellationToken::new(), CancellationToken::new());
        let member = member.run(stop.clone(), stopped.clone().drop_guard());
        let tasks = [
            tokio::spawn(member),
            tokio::spawn(heartbeats.send(stop.clone())),
        ];
        Ok(Self {
            state,
            stop,
            stopped,
            _tasks: Arc::new(tasks.map(AbortOnDropHandle::new)),
        })
    }

    /// What this process owns of a kind of work.
    pub fn leases(&self, work: Work) -> Leases {
        let group = self.clone();
        Leases { group, work }
    }

    /// Gives everything up, so that others need not wait for `ttl`. The work must have ended.
    pub async fn leave(&self) {
        self.stop.cancel();
        self.stopped.cancelled().await;
    }

    fn guard(&self, number: u16) -> Option<LeaseGuard> {
        // Counted first, so that a handover that starts meanwhile sees it.
        let losses = self.state.begin_guard(number)?;
        let guard = LeaseGuard {
            state: Arc::clone(&self.state),
            number,
            losses,
        };
        self.state.owns(number).then_some(guard)
    }
}

impl Leases {
    /// The partitions currently owned, and every change.
    pub fn owned(&self) -> watch::Receiver<Owned> {
        self.group.state.subscribe(self.work)
    }

    /// Whether a partition is certainly owned right now; to be checked before every action.
    pub fn owns(&self, partition: u16) -> bool {
        self.group.state.owns(self.work.number(partition))
    }

    /// Announces work in a partition, if it is owned.
    pub fn guard(&self, partition: u16) -> Option<LeaseGuard> {
        self.group.guard(self.work.number(partition))
    }
}

/// The partition of an id; the same in every process and version.
pub(crate) fn partition_of(id: &str) -> u16 {
    // FNV-1a: simple enough to stay the same forever.
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let partition = (hash ^ (hash >> 32)) % u64::from(PARTITIONS);
    u16::try_from(partition).unwrap_or_default()
}

impl LeaseGuard {
    /// Whether the partition has been ours without a break and certainly still is. A planned
    /// handover that still waits for this work does not count.
    pub fn is_valid(&self) -> bool {
        self.state.is_unbroken(self.number, self.losses)
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        self.state.end_guard(self.number);
    }
}

#[cfg(test)]
mod tests;
