//! Receives the positions of the projections from the projector.

use std::time::Duration;

use service::progress::{CHANNEL, Moved};
use sqlx::PgPool;
use sqlx::postgres::{PgListener, PgNotification};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::{Checkpoint, Database, Observed, Projection};

/// Maximum interval at which an unavailable, or not yet migrated, database is tried again.
const AWAY_POLL: Duration = Duration::from_millis(200);

/// Updates the known state from the projector's notifications, and reads it if they do not suffice.
pub(super) struct Follower {
    pool: PgPool,
    poll: Duration,
    known: watch::Sender<Observed>,
    listener: Option<PgListener>,
    /// When the checkpoints were read, if the notifications since then cover all changes.
    read_at: Option<Instant>,
}

impl Follower {
    pub(super) fn new(pool: PgPool, poll: Duration, known: watch::Sender<Observed>) -> Self {
        Self {
            pool,
            poll,
            known,
            listener: None,
            read_at: None,
        }
    }

    /// Updates the state until all receivers are dropped.
    pub(super) async fn run(mut self) {
        while !self.known.is_closed() {
            // Listen first, then read, so that changes in between are received.
            if self.listener.is_none() {
                self.read_at = None;
                self.listener = self.listen().await.ok();
            }
            if self.read_at.is_none_or(|at| at.elapsed() >= self.poll) {
                self.read().await;
            }
            let away = self.known.borrow().is_away();
            let poll = if away {
                self.poll.min(AWAY_POLL)
            } else {
                self.poll
            };
            let closed = self.known.clone();
            tokio::select! {
                () = self.hear(poll) => {}
                () = closed.closed() => return,
            }
            if self.listener.is_none() {
                self.forget();
            }
        }
    }

    /// Returns when the projector has advanced, or it is time to check whether it has.
    async fn hear(&mut self, poll: Duration) {
        let Some(listener) = &mut self.listener else {
            return sleep(poll).await;
        };
        match timeout(poll, listener.try_recv()).await {
            Ok(Ok(Some(first))) => {
                let mut heard = vec![first];
                heard.extend(std::iter::from_fn(|| listener.next_buffered()));
                self.take(&heard);
            }
            Err(_) => {}
            Ok(lost) => {
                let error = lost.err().map(|error| error.to_string());
                tracing::debug!(error, "Listening for the projector again");
                self.listener = None;
            }
        }
    }

    fn take(&mut self, heard: &[PgNotification]) {
        let moved = heard.iter().map(|one| serde_json::from_str(one.payload()));
        let mut follows = false;
        if let Ok(moved) = moved.collect::<Result<Vec<Moved>, _>>() {
            self.known
                .send_modify(|known| follows = moved.iter().all(|one| known.take(one)));
        }
        if !follows {
            self.read_at = None;
        }
    }

    async fn listen(&self) -> Result<PgListener, sqlx::Error> {
        let mut listener = PgListener::connect_with(&self.pool).await?;
        listener.listen(CHANNEL).await?;
        // The loss of the connection is reported immediately, instead of once there is another one.
        listener.eager_reconnect(false);
        Ok(listener)
    }

    /// Forgets the positions. A server that went down may have lost its last changes, so that they
    /// may no longer be true.
    fn forget(&self) {
        let unknown = [None; Projection::ALL.len()];
        self.known.send_modify(|known| known.checkpoints = unknown);
    }

    async fn read(&mut self) {
        let read = self.checkpoints().await;
        let was_away = self.known.borrow().is_away();
        match read {
            Ok(checkpoints) => {
                if was_away {
                    tracing::info!("The read models can be read again");
                }
                self.known.send_replace(Observed {
                    database: Database::There,
                    checkpoints,
                });
                self.read_at = Some(Instant::now());
            }
            Err(error) => {
                self.listener = None;
                if !was_away {
                    tracing::warn!(%error, "The read models cannot be read");
                }
                self.known
                    .send_modify(|known| known.database = Database::Away);
            }
        }
    }

    async fn checkpoints(
        &self,
    ) -> Result<[Option<Checkpoint>; Projection::ALL.len()], sqlx::Error> {
        let rows = sqlx::query!("SELECT name, epoch, sequence FROM projection_checkpoints")
            .fetch_all(&self.pool)
            .await?;
        let mut checkpoints = [None; Projection::ALL.len()];
        for row in rows {
            let of = Projection::ALL.iter().find(|p| p.name() == row.name);
            let place = of.and_then(|projection| checkpoints.get_mut(*projection as usize));
            if let (Some(place), Ok(epoch)) = (place, u32::try_from(row.epoch)) {
                let sequence = u64::try_from(row.sequence).unwrap_or_default();
                *place = Some(Checkpoint { epoch, sequence });
            }
        }
        Ok(checkpoints)
    }
}
