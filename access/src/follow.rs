//! Reads keys, accounts and organizations from the log, and follows it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use event_log::{EventLog, Tail, TailError};
use schemas::{AggregateType, Log, Recorded};
use service::Clock;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::directory::KeyDirectory;
use crate::limit::Limiter;
use crate::person::Persons;
use crate::staff::StaffDirectory;
use crate::{Access, Inner, LimitSettings, StartError};

/// Events taken at a time.
const BATCH: usize = 1_000;
const FOLLOW_AGAIN: Duration = Duration::from_secs(1);
/// How often expired keys are removed. They stop working as soon as they expire.
const SWEEP: Duration = Duration::from_secs(1);

impl Access {
    /// Reads all keys and accounts from the log, accounts from their last checkpoint on, then
    /// follows it until `shutdown`. Postgres need not be available.
    pub async fn start(
        log: &EventLog,
        pool: &PgPool,
        settings: LimitSettings,
        clock: Arc<dyn Clock>,
        shutdown: CancellationToken,
    ) -> Result<Self, StartError> {
        let (persons, checkpoint) = Persons::noted(log, settings.persons.clone()).await?;
        let noted = persons.through();
        let access = Self(Arc::new(Inner {
            keys: KeyDirectory::default(),
            persons,
            checkpoint: Arc::new(checkpoint),
            staff: StaffDirectory::default(),
            limiter: Limiter::start(pool, &settings, shutdown.clone()),
            settings,
            clock,
            following: AtomicBool::new(true),
        }));
        access.read_organizations(log, noted).await?;
        let kinds = [
            AggregateType::Key,
            AggregateType::Account,
            AggregateType::Organization,
        ];
        let mut tail = log.tail(Log::Events, noted, &kinds).await?;
        while !tail.caught_up() {
            access.take_up(&mut tail).await?;
        }
        access.note();
        tokio::spawn(access.clone().follow(tail, shutdown));
        Ok(access)
    }

    /// Reads what has no checkpoint: the keys, and who belongs to which organization's staff.
    async fn read_organizations(&self, log: &EventLog, through: u64) -> Result<(), StartError> {
        if through == 0 {
            return Ok(());
        }
        let kinds = [AggregateType::Key, AggregateType::Organization];
        let mut tail = log.tail(Log::Events, 0, &kinds).await?;
        while !tail.caught_up() && tail.last_sequence() < through {
            let batch = tail.next(BATCH).await?;
            let now = self.clock().now();
            let events = batch.readable("keys and accounts");
            for recorded in events.filter(|recorded| recorded.sequence <= through) {
                self.apply(recorded, now);
            }
        }
        let persons = self.persons();
        self.staff()
            .retain(|account| !persons.is_forgotten(account));
        Ok(())
    }

    async fn follow(self, mut tail: Tail, shutdown: CancellationToken) {
        let mut sweep = tokio::time::interval(SWEEP);
        loop {
            let taken = tokio::select! {
                () = shutdown.cancelled() => return,
                taken = self.take_up(&mut tail) => taken,
                _ = sweep.tick() => {
                    self.0.keys.sweep(self.0.clock.now());
                    continue;
                }
            };
            self.0.following.store(taken.is_ok(), Ordering::Relaxed);
            match taken {
                Ok(()) => self.note(),
                Err(error) => {
                    tracing::error!(%error, "The keys and accounts in the log cannot be followed");
                    tokio::time::sleep(FOLLOW_AGAIN).await;
                }
            }
        }
    }

    async fn take_up(&self, tail: &mut Tail) -> Result<(), TailError> {
        let batch = tail.next(BATCH).await?;
        let now = self.clock().now();
        for recorded in batch.readable("keys and accounts") {
            self.apply(recorded, now);
        }
        self.0.checkpoint.count(&batch);
        Ok(())
    }

    fn apply(&self, recorded: &Recorded, now: DateTime<Utc>) {
        self.0.keys.apply(recorded, self.limiter(), now);
        self.0.staff.apply(recorded, self.limiter());
        if recorded.stream.aggregate == AggregateType::Account {
            self.0.persons.apply(recorded, now);
        }
    }

    /// Saves a checkpoint of the accounts if much is new.
    fn note(&self) {
        let known = self.clone();
        let encode = move |encoder| known.persons().encode(encoder);
        self.0.checkpoint.note(encode);
    }
}
