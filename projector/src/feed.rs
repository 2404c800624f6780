//! The projections of one log, kept up to date by the active projector.

mod catch_up;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use event_log::EventLog;
use schemas::Log;
use sqlx::{PgConnection, PgPool};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::batch::{Group, Member};
use crate::batch_pause::BatchPause;
use crate::checkpoint;
use crate::connect::Connector;
use crate::error::FeedError;
use crate::forgetting;
use crate::leadership::Leadership;
use crate::projection::{self, Role};
use crate::reader::Reader;
use crate::retry::retry;
use crate::status::Status;
use crate::traced::traced;
use crate::writers::Writers;

const BACKOFF: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(1);
/// How often to check, while nothing happens, whether another process has changed rows.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Dependencies of every part of a feed.
#[derive(Clone)]
pub(crate) struct Feed {
    pub(crate) log: Log,
    pub(crate) event_log: EventLog,
    pub(crate) connector: Connector,
    pub(crate) pool: PgPool,
    pub(crate) batch: usize,
    /// The maximum number of sessions that write a large batch in parallel.
    pub(crate) writers: usize,
    pub(crate) status: Status,
}

impl Feed {
    /// Works or stands by until `shutdown`; retries whatever fails.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        let work = async {
            loop {
                let error = match Leadership::acquire(&self.connector, self.log, &self.status).await
                {
                    Ok(leadership) => self.stay_active(&leadership).await,
                    Err(error) => error.into(),
                };
                self.status.failed(&error);
                sleep(BACKOFF).await;
            }
        };
        Box::pin(shutdown.run_until_cancelled(work)).await;
    }

    /// Works for as long as this projector is the active one.
    async fn stay_active(&self, leadership: &Leadership) -> FeedError {
        let work = async {
            let mut backoff = BACKOFF;
            loop {
                let started = Instant::now();
                let error = self.work().await;
                self.status.failed(&error);
                if started.elapsed() > BACKOFF_MAX {
                    backoff = BACKOFF;
                }
                sleep(backoff).await;
                backoff = (backoff * 2).min(BACKOFF_MAX);
            }
        };
        tokio::select! {
            () = leadership.lost() => FeedError::LeadershipLost,
            error = work => error,
        }
    }

    async fn work(&self) -> FeedError {
        match self.follow().await {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }

    async fn follow(&self) -> Result<std::convert::Infallible, FeedError> {
        let mut writers = self.writers().await?;
        let mut groups = self.groups(writers.first()).await?;
        for group in &mut groups {
            for member in &mut group.members {
                retry(member, writers.first(), &self.event_log, self.log).await?;
            }
            self.status.report_position(group);
        }
        // The furthest continue; those behind them, such as a new projection, catch up separately.
        let Some(mut live) = groups.pop() else {
            return Err(FeedError::Reader);
        };
        let mut reader =
            Reader::open(&self.event_log, self.log, live.position, self.batch, &[]).await?;
        self.status.connected();
        let (moved, position) = watch::channel(live.position);
        let mut behind = JoinSet::new();
        for group in groups {
            behind.spawn(catch_up::catch_up(self.clone(), group, position.clone()));
        }
        let mut pause = BatchPause::default();
        loop {
            tokio::select! {
                Some(caught_up) = behind.join_next() => {
                    let group = caught_up.map_err(|_| FeedError::Reader)?;
                    catch_up::join(self, group, &mut live, &mut writers).await?;
                }
                () = sleep(CHECK_EVERY) => live.check(writers.first()).await?,
                batch = reader.next() => {
                    let batch = batch?;
                    let written =
                        self.write(&mut live, &mut writers, &batch.items, batch.last_sequence);
                    let took = traced(self.log, &batch.items, written).await?;
                    moved.send_replace(live.position);
                    sleep(pause.after(batch.items.len(), took, Instant::now())).await;
                }
            }
        }
    }

    /// Opens the sessions that write rows.
    pub(crate) async fn writers(&self) -> Result<Writers, sqlx::Error> {
        Writers::open(&self.connector, self.log, self.writers).await
    }

    /// Writes a batch and reports it; returns how long the writing took.
    pub(crate) async fn write(
        &self,
        group: &mut Group,
        writers: &mut Writers,
        items: &[event_log::Item],
        to: u64,
    ) -> Result<Duration, FeedError> {
        forgetting::drop_what_is_kept(&self.pool, items).await?;
        let started = Instant::now();
        writers.write(group, &self.event_log, items, to).await?;
        let took = started.elapsed();
        self.status.wrote(group, items.len(), took);
        Ok(took)
    }

    /// Groups the log's projections by position, the furthest last.
    pub(crate) async fn groups(&self, session: &mut PgConnection) -> Result<Vec<Group>, FeedError> {
        let epoch = self.event_log.position(self.log, 0).epoch();
        let projections = projection::all(self.log, &self.event_log, Role::Serving);
        let names: Vec<_> = projections.iter().map(|one| one.name()).collect();
        checkpoint::ensure(session, self.log, epoch, &names).await?;
        let positions = checkpoint::all(&mut *session).await?;
        let mut groups: BTreeMap<u64, Group> = BTreeMap::new();
        for projection in projections {
            let name = projection.name();
            let Some(checkpoint) = positions.iter().find(|one| one.name == name) else {
                return Err(FeedError::Database(sqlx::Error::RowNotFound));
            };
            checkpoint.fits(&self.event_log, self.log).await?;
            let group = groups.entry(checkpoint.sequence).or_insert_with(|| Group {
                log: self.log,
                epoch,
                position: checkpoint.sequence,
                members: Vec::new(),
                notifies_readers: true,
            });
            let member = Member::load(session, projection, checkpoint).await?;
            group.members.push(member);
        }
        Ok(groups.into_values().collect())
    }
}
