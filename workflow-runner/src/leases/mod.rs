//! Who does what: work is cut into partitions, and each partition has one owner at a time.
//!
//! Two key-value buckets hold who is there (`<name>-members`, one key each, renewed as a
//! heartbeat) and who owns what (`<name>-partitions`, changed only by compare-and-set). A partition
//! whose owner has sent no heartbeat for `ttl` goes to somebody else.
//!
//! No two clocks are compared. Whoever judges counts by its own clock, from when it heard a
//! heartbeat to when it sent one of its own that came back behind all others that the server had by
//! then. An owner stops earlier by its own: it counts from the moment it *sent* its last
//! acknowledged heartbeat, so a process that was suspended finds its leases run out before it can
//! act on them.
//!
//! Leases keep work from being done twice for nothing; that nothing is *recorded* twice is for
//! the log's expected sequences.

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

/// The partitions that this process owns, out of all. Clones are the same leases; when the last
/// is dropped without [`Leases::stop`], nobody renews them and others take over in time.
#[derive(Clone)]
pub struct Leases {
    state: Arc<LeaseState>,
    owned: watch::Receiver<Owned>,
    stop: CancellationToken,
    stopped: CancellationToken,
    _tasks: Arc<[AbortOnDropHandle<()>; 2]>,
}

/// A set of partitions.
pub type Owned = Arc<BTreeSet<u16>>;

/// Work under way in a partition: a planned handing over waits for it, for a while.
pub struct LeaseGuard {
    state: Arc<LeaseState>,
    partition: u16,
    /// The partition's losses when the work began.
    losses: u64,
}

impl Leases {
    /// Joins the others who share `partitions` partitions of the work `name`, as long as each
    /// sends a heartbeat within `ttl`.
    pub async fn start(
        log: &EventLog,
        name: &str,
        partitions: u16,
        ttl: Duration,
    ) -> Result<Self, Error> {
        let state = Arc::new(LeaseState::new(name, partitions));
        let (member, heartbeats) = Member::join(log, name, ttl, Arc::clone(&state)).await?;
        let (stop, stopped) = (CancellationToken::new(), CancellationToken::new());
        let member = member.run(stop.clone(), stopped.clone().drop_guard());
        let tasks = [
            tokio::spawn(member),
            tokio::spawn(heartbeats.send(stop.clone())),
        ];
        Ok(Self {
            owned: state.subscribe(),
            state,
            stop,
            stopped,
            _tasks: Arc::new(tasks.map(AbortOnDropHandle::new)),
        })
    }

    /// The partitions owned now, and every change.
    pub fn owned(&self) -> watch::Receiver<Owned> {
        self.owned.clone()
    }

    /// Whether a partition is surely owned at this moment; to be asked before every act.
    pub fn owns(&self, partition: u16) -> bool {
        self.state.owns(partition)
    }

    /// Announces work in a partition, if it is owned.
    pub fn guard(&self, partition: u16) -> Option<LeaseGuard> {
        // Counted first, so that a handing over which begins meanwhile sees it.
        let losses = self.state.begin_guard(partition)?;
        let guard = LeaseGuard {
            state: Arc::clone(&self.state),
            partition,
            losses,
        };
        self.owns(partition).then_some(guard)
    }

    /// Where something belongs; the same in every process and version.
    pub fn partition_of(&self, id: &str) -> u16 {
        partition_of(id, self.state.partitions())
    }

    /// Gives everything up, so that others need not wait for `ttl`. The work must have ended.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.stopped.cancelled().await;
    }
}

/// As [`Leases::partition_of`], for those who take no part themselves.
pub(crate) fn partition_of(id: &str, partitions: u16) -> u16 {
    // FNV-1a: plain enough to be the same for ever.
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let partition = (hash ^ (hash >> 32)) % u64::from(partitions.max(1));
    u16::try_from(partition).unwrap_or_default()
}

impl LeaseGuard {
    /// Whether the partition has been ours all the time and surely is at this moment. A planned
    /// handing over that still waits for this work does not count.
    pub fn is_valid(&self) -> bool {
        self.state.is_unbroken(self.partition, self.losses)
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        self.state.end_guard(self.partition);
    }
}

#[cfg(test)]
mod tests;
