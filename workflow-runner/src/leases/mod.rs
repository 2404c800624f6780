//! Who does what: work is cut into partitions, and each partition has one owner at a time.
//!
//! Two key-value buckets hold who is there (`<name>-members`, one key each, renewed as a sign of
//! life) and who owns what (`<name>-partitions`, changed only by compare-and-set). A partition
//! whose owner has given no sign of life for `ttl` goes to somebody else. The age of a sign of
//! life is measured on the server's clock alone, and an owner stops earlier by its own: it counts
//! from the moment it *sent* its last acknowledged sign, so a process that was suspended finds
//! its leases run out before it can act on them.
//!
//! Leases keep work from being done twice for nothing; that nothing is *recorded* twice is for
//! the log's expected sequences.

mod member;
mod mirror;
mod share;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use event_log::{Error, EventLog};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use member::Member;

/// The partitions that this process owns, out of all. Clones are the same leases; when the last
/// is dropped without [`Leases::stop`], nobody renews them and others take over in time.
#[derive(Clone)]
pub struct Leases {
    shared: Arc<Shared>,
    owned: watch::Receiver<Owned>,
    stop: CancellationToken,
    stopped: CancellationToken,
    _member: Arc<AbortOnDropHandle<()>>,
}

/// A set of partitions.
pub type Owned = Arc<BTreeSet<u16>>;

/// What the member and those who use its leases both see.
struct Shared {
    partitions: u16,
    /// Work under way in each partition.
    holds: Vec<AtomicUsize>,
    /// How often each partition has been lost or given up.
    losses: Vec<AtomicU64>,
    /// Until when the leases are surely ours.
    valid_until: watch::Sender<Instant>,
}

/// Work under way in a partition: a planned handing over waits for it, for a while.
pub struct Hold {
    shared: Arc<Shared>,
    partition: u16,
    /// The partition's losses when the work began.
    losses: u64,
}

impl Leases {
    /// Joins the others who share `partitions` partitions of the work `name`, as long as each
    /// gives a sign of life within `ttl`.
    pub async fn start(
        log: &EventLog,
        name: &str,
        partitions: u16,
        ttl: Duration,
    ) -> Result<Self, Error> {
        let shared = Arc::new(Shared {
            partitions,
            holds: (0..partitions).map(|_| AtomicUsize::new(0)).collect(),
            losses: (0..partitions).map(|_| AtomicU64::new(0)).collect(),
            valid_until: watch::Sender::new(Instant::now()),
        });
        let (publish, owned) = watch::channel(Owned::default());
        let stop = CancellationToken::new();
        let member = Member::join(log, name, ttl, Arc::clone(&shared), publish).await?;
        let stopped = CancellationToken::new();
        let task = tokio::spawn(member.run(stop.clone(), stopped.clone().drop_guard()));
        Ok(Self {
            shared,
            owned,
            stop,
            stopped,
            _member: Arc::new(AbortOnDropHandle::new(task)),
        })
    }

    /// The partitions owned now, and every change.
    pub fn owned(&self) -> watch::Receiver<Owned> {
        self.owned.clone()
    }

    /// Whether a partition is surely owned at this moment; to be asked before every act.
    pub fn holds(&self, partition: u16) -> bool {
        self.shared.is_current() && self.owned.borrow().contains(&partition)
    }

    /// Announces work in a partition, if it is owned.
    pub fn hold(&self, partition: u16) -> Option<Hold> {
        // Counted first, so that a handing over which begins meanwhile sees it.
        let hold = Hold::new(Arc::clone(&self.shared), partition)?;
        self.holds(partition).then_some(hold)
    }

    /// Where something belongs; the same in every process and version.
    pub fn partition_of(&self, id: &str) -> u16 {
        partition_of(id, self.shared.partitions)
    }

    /// Gives everything up, so that others need not wait for `ttl`. The work must have ended.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.stopped.cancelled().await;
    }
}

fn partition_of(id: &str, partitions: u16) -> u16 {
    // FNV-1a: plain enough to be the same for ever.
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let partition = (hash ^ (hash >> 32)) % u64::from(partitions.max(1));
    u16::try_from(partition).unwrap_or_default()
}

impl Hold {
    fn new(shared: Arc<Shared>, partition: u16) -> Option<Self> {
        let place = usize::from(partition);
        let losses = shared.losses.get(place)?.load(Ordering::SeqCst);
        shared.holds[place].fetch_add(1, Ordering::SeqCst);
        Some(Self {
            shared,
            partition,
            losses,
        })
    }

    /// Whether the partition has been ours all the time and surely is at this moment. A planned
    /// handing over that still waits for this work does not count.
    pub fn is_valid(&self) -> bool {
        let losses = self.shared.losses[usize::from(self.partition)].load(Ordering::SeqCst);
        self.shared.is_current() && losses == self.losses
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.shared.holds[usize::from(self.partition)].fetch_sub(1, Ordering::SeqCst);
    }
}

impl Shared {
    fn is_current(&self) -> bool {
        Instant::now() < *self.valid_until.borrow()
    }

    /// Makes every hold on a partition worthless.
    fn lose(&self, partition: u16) {
        self.losses[usize::from(partition)].fetch_add(1, Ordering::SeqCst);
    }

    fn is_held(&self, partition: u16) -> bool {
        self.holds[usize::from(partition)].load(Ordering::SeqCst) > 0
    }
}

#[cfg(test)]
mod tests;
