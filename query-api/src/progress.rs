//! Progress of the projections, kept in memory so that a read that waits for a position rarely
//! needs a query.

mod follower;

use std::time::Duration;

use event_log::Position;
use schemas::Log;
use service::HttpError;
use service::progress::Moved;
use sqlx::PgPool;
use tokio::sync::watch;
use tokio::time::timeout;

use self::follower::Follower;

macro_rules! projections {
    ($($name:ident = $text:literal in $log:ident),+ $(,)?) => {
        /// A projection that serves reads.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Projection { $($name),+ }

        impl Projection {
            const ALL: &[Self] = &[$(Self::$name),+];

            /// Its name in the checkpoint table, which is that of its first table.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$name => $text),+ }
            }

            /// The log it is folded from.
            const fn log(self) -> Log {
                match self { $(Self::$name => Log::$log),+ }
            }
        }
    };
}

projections! {
    Organizations = "organizations" in Events,
    ApiKeys = "api_keys" in Events,
    Workflows = "workflows" in Events,
    Runs = "runs" in Events,
    Webhooks = "webhooks" in Events,
    Companies = "companies" in Events,
    Deals = "deals" in Events,
    Contacts = "contacts" in Events,
    Orders = "orders" in Events,
    Leads = "leads" in Events,
    Clients = "clients" in Events,
    Accounts = "accounts" in Events,
    Circles = "circles" in Events,
    SosCalls = "sos_calls" in Events,
    Crossings = "crossings" in Events,
    Positions = "positions" in Locations,
    Deliveries = "deliveries" in Deliveries,
}

/// Whether the database answered the last query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Database {
    #[default]
    NotAsked,
    There,
    Away,
}

/// The known state of the projections.
#[derive(Clone, Debug, Default)]
struct Observed {
    database: Database,
    checkpoints: [Option<Checkpoint>; Projection::ALL.len()],
}

#[derive(Clone, Copy, Debug)]
struct Checkpoint {
    epoch: u32,
    sequence: u64,
}

impl Observed {
    fn is_away(&self) -> bool {
        self.database == Database::Away
    }

    /// Returns a 503 error if the database is unavailable.
    fn check_database(&self) -> Result<(), HttpError> {
        if self.is_away() {
            return Err(HttpError::unavailable("the database is not available"));
        }
        Ok(())
    }

    /// Applies a notification of the projector. Returns `false` if it does not follow from the
    /// known state, so that the positions have to be read.
    fn take(&mut self, moved: &Moved) -> bool {
        let mut follows = true;
        for projection in Projection::ALL {
            if !moved.projections.contains(&projection.name()) {
                continue;
            }
            match &mut self.checkpoints[*projection as usize] {
                // A position read in the meantime may be later than the one notified now.
                Some(known) if known.epoch == moved.epoch => {
                    known.sequence = known.sequence.max(moved.sequence);
                }
                _ => follows = false,
            }
        }
        follows
    }

    fn has_reached(&self, position: Position, projections: &[Projection]) -> bool {
        projections
            .iter()
            // A projection knows nothing about positions of other logs.
            .filter(|projection| projection.log() == position.log())
            .all(|projection| {
                self.checkpoints[*projection as usize].is_some_and(|checkpoint| {
                    checkpoint.epoch == position.epoch()
                        && checkpoint.sequence >= position.sequence()
                })
            })
    }
}

/// Knows the positions of the projections. Clones share their state.
#[derive(Clone, Debug)]
pub(crate) struct Progress(watch::Receiver<Observed>);

impl Progress {
    /// Follows the projections for as long as a clone of this is kept.
    pub(crate) fn follow(pool: PgPool, every: Duration) -> Self {
        let (known, receiver) = watch::channel(Observed::default());
        tokio::spawn(Follower::new(pool, every, known).run());
        Self(receiver)
    }

    /// Returns a 503 error if the database is known to be unavailable, without trying it.
    pub(crate) fn check_database(&self) -> Result<(), HttpError> {
        self.0.borrow().check_database()
    }

    /// Whether the database provides all that reads need.
    pub(crate) fn readiness(&self) -> Result<(), String> {
        match self.0.borrow().database {
            Database::There => Ok(()),
            Database::NotAsked | Database::Away => Err("no answer".to_owned()),
        }
    }

    /// Returns how many events of a log, up to its end, the projection with the largest lag has not
    /// processed, or `None` if that is unknown.
    pub(crate) fn behind(&self, end: Position) -> Option<u64> {
        let known = self.0.borrow();
        let of_log = Projection::ALL.iter().filter(|p| p.log() == end.log());
        let behind = of_log.map(|projection| {
            let checkpoint = known.checkpoints[*projection as usize]?;
            let same = checkpoint.epoch == end.epoch();
            same.then(|| end.sequence().saturating_sub(checkpoint.sequence))
        });
        behind.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// Waits until the projections have reached a position.
    pub(crate) async fn wait_for(
        &self,
        position: Position,
        projections: &[Projection],
        max_wait: Duration,
    ) -> Result<(), HttpError> {
        if self.0.borrow().has_reached(position, projections) {
            return Ok(());
        }
        let mut receiver = self.0.clone();
        let reached =
            receiver.wait_for(|known| known.is_away() || known.has_reached(position, projections));
        match timeout(max_wait, reached).await {
            // Borrowing again what is already borrowed here would deadlock if a writer waits
            // between the two borrows.
            Ok(Ok(known)) => known.check_database(),
            Ok(Err(_)) | Err(_) => Err(not_reached()),
        }
    }
}

/// The 503 error for a position that was not reached in time.
pub(crate) fn not_reached() -> HttpError {
    HttpError::unavailable("the position in Waypost-Min-Position is not reached yet; try again")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Many times longer than the whole test takes.
    const TIMEOUT: Duration = Duration::from_secs(30);

    fn known(sequence: u64) -> Observed {
        let epoch = 1;
        Observed {
            database: Database::There,
            checkpoints: [Some(Checkpoint { epoch, sequence }); Projection::ALL.len()],
        }
    }

    #[test]
    fn a_notification_about_some_projections_counts_for_these_alone() {
        let mut all = known(5);
        let told = |epoch, sequence| Moved {
            epoch,
            sequence,
            projections: vec!["orders", "unheard_of"],
        };
        assert!(all.take(&told(1, 9)));
        // A position that was read before the notification is kept.
        assert!(all.take(&told(1, 7)));
        let nine = "e00000001-9".parse().unwrap();
        assert!(all.has_reached(nine, &[Projection::Orders]));
        assert!(!all.has_reached(nine, &[Projection::Leads]));
        assert!(
            !all.take(&told(2, 1)),
            "of another epoch, which has to be read"
        );
        assert!(
            !Observed::default().take(&told(1, 9)),
            "nothing is known yet"
        );
    }

    /// Readers wait for each position while it is written, so that some hold the previous one when
    /// the next is to be written.
    async fn many_waits() {
        const POSITIONS: u64 = 20_000;
        let (sender, receiver) = watch::channel(known(0));
        let progress = Progress(receiver);
        let waiting = (0..4).map(|_| {
            let progress = progress.clone();
            tokio::spawn(async move {
                for sequence in 1..=POSITIONS {
                    let position = format!("e00000001-{sequence}").parse().unwrap();
                    let waited = progress.wait_for(position, &[Projection::Orders], TIMEOUT);
                    waited.await.unwrap();
                }
            })
        });
        let waiting: Vec<_> = waiting.collect();
        for sequence in 1..=POSITIONS {
            sender.send_replace(known(sequence));
            tokio::task::yield_now().await;
        }
        for waited in waiting {
            waited.await.unwrap();
        }
    }

    /// On its own thread, because a deadlocked runtime cannot be stopped.
    #[test]
    fn those_who_wait_are_in_nobodys_way() {
        let (done, is_done) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(4)
                .enable_time()
                .build();
            runtime
                .unwrap()
                .block_on(async { tokio::spawn(many_waits()).await.unwrap() });
            let _ = done.send(());
        });
        assert!(is_done.recv_timeout(TIMEOUT).is_ok(), "it stands still");
    }
}
