//! One projector per log is active, the others stand by.

use std::time::Duration;

use schemas::Log;
use sqlx::{Connection as _, PgConnection};
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::checkpoint::log_name;
use crate::connect::Connector;
use crate::status::Status;

/// Marks the projectors' advisory locks among all others of the database.
const LOCKS: i32 = 0x7761_7970;
/// How often a standby projector tries to become active.
const TRY_EVERY: Duration = Duration::from_millis(250);

/// Held by the active projector; dropping it lets another one take over at once.
///
/// It only keeps projectors out of each other's way. That each event counts once does not depend on
/// it: every batch expects the position that the previous one left.
pub(crate) struct Leadership {
    lost: CancellationToken,
    _release: DropGuard,
}

impl Leadership {
    /// Waits until this projector is the active one of `log`.
    pub(crate) async fn acquire(
        connector: &Connector,
        log: Log,
        status: &Status,
    ) -> Result<Self, sqlx::Error> {
        let mut session = connector.holder(log).await?;
        while !answered(connector.takeover, try_lock(&mut session, log)).await? {
            status.report_standby();
            sleep(TRY_EVERY).await;
        }
        answered(connector.takeover, end_others(&mut session, log)).await?;
        tracing::info!(log = log_name(log), "This projector is now active");
        let (lost, release) = (CancellationToken::new(), CancellationToken::new());
        tokio::spawn(hold(
            session,
            connector.takeover,
            lost.clone(),
            release.clone(),
        ));
        Ok(Self {
            lost,
            _release: release.drop_guard(),
        })
    }

    /// Ends when another projector may have become active.
    pub(crate) async fn lost(&self) {
        self.lost.cancelled().await;
    }
}

/// Pings often enough for the server to keep the session, until it is released or lost.
async fn hold(
    mut session: PgConnection,
    takeover: Duration,
    lost: CancellationToken,
    release: CancellationToken,
) {
    let lost = lost.drop_guard();
    loop {
        tokio::select! {
            () = release.cancelled() => {
                // Closing the session frees the lock at once; a server that is gone frees it too.
                timeout(takeover, session.close()).await.ok();
                return;
            }
            () = sleep(takeover / 4) => {
                if let Err(error) = answered(takeover / 2, session.ping()).await {
                    tracing::warn!(%error, "Lost the lock of the active projector");
                    drop(lost);
                    return;
                }
            }
        }
    }
}

async fn try_lock(session: &mut PgConnection, log: Log) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT pg_try_advisory_lock($1, $2) AS "locked!""#,
        LOCKS,
        log as i32
    )
    .fetch_one(session)
    .await
}

/// Ends sessions that the previous projector may have left within a transaction, so that nothing
/// waits for rows that will never be written.
async fn end_others(session: &mut PgConnection, log: Log) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND usename = current_user AND application_name = $1",
        Connector::writer_name(log),
    )
    .fetch_all(session)
    .await?;
    Ok(())
}

async fn answered<T>(
    max_wait: Duration,
    answer: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    timeout(max_wait, answer)
        .await
        .unwrap_or(Err(sqlx::Error::PoolTimedOut))
}
