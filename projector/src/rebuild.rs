//! Rebuilding: a projection is folded again from the first event, beside the serving rows, and
//! replaces them in one transaction.

use std::slice;
use std::time::Duration;

use event_log::{EventLog, Position};
use futures::future::try_join_all;
use schemas::Log;
use serde::Serialize;
use service::progress::CHANNEL;
use sqlx::{Connection as _, PgConnection, PgPool};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::bulk_throttle::{BulkThrottle, Pace};
use crate::checkpoint::{self, Checkpoint};
use crate::copy::layout::{Layout, run};
use crate::copy::{Copy, Fold, LogRetries, Progress, Tell, advance_together};
use crate::error::{FeedError, RepairError, has_code};
use crate::projection::{LOGS, Role, bigint};

/// This close to the end of the log, the rest is folded while the active projector waits.
const CLOSE: u64 = 1_000;
/// Rounds tried from close by: under load the end is never reached.
const CLOSE_ROUNDS: u32 = 5;
/// How long the active projector may be kept waiting.
const TAKEOVER: Duration = Duration::from_secs(2);
/// How long reads may be kept waiting at first: while a read in progress holds a table, the reads
/// queued after us wait as well.
const LOCK: Duration = Duration::from_millis(50);
/// And at last: by then the server has cancelled any cleanup of the old rows.
const LOCK_MAX: Duration = Duration::from_millis(1_200);
/// Pause between two attempts.
const BREATH: Duration = Duration::from_millis(500);
/// Within this time the server has released what a session that it ended had held.
const RELEASED: Duration = Duration::from_secs(20);

/// A projection that was rebuilt.
#[derive(Clone, Debug, Serialize)]
pub struct Rebuilt {
    /// The projection.
    pub name: String,
    /// The position in the log that its rows have reached.
    #[serde(serialize_with = "as_text")]
    pub position: Position,
}

fn as_text<S: serde::Serializer>(position: &Position, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(position)
}

/// Why an attempt to take over has to be repeated.
enum Retry {
    /// Reads hold the tables.
    Busy,
    /// The rest took too long.
    Late,
}

/// Rebuilds projections while they are in use; those of one log in one pass over it. If stopped by
/// `stop`, or killed, it leaves the serving rows as they are, and continues where it was when it is
/// restarted.
///
/// # Errors
/// If the log or the database does not answer, another process rebuilds one of the projections, or
/// it was stopped.
pub async fn rebuild(
    log: &EventLog,
    pool: &PgPool,
    names: &[&str],
    pace: Pace,
    tell: Tell<'_>,
    stop: &CancellationToken,
) -> Result<Vec<Rebuilt>, RepairError> {
    let work = Box::pin(async {
        let mut copies = Vec::with_capacity(names.len());
        for name in names {
            copies.push(Copy::open(log, pool, name, Role::Successor, pace).await?);
        }
        let mut rebuilt = Vec::with_capacity(names.len());
        for feed in LOGS {
            let of_feed = copies.extract_if(.., |copy| copy.fold.log == feed);
            let mut of_feed: Vec<_> = of_feed.collect();
            fill(log, feed, &mut of_feed, tell).await?;
            for mut copy in of_feed {
                rebuilt.push(take_over(log, pool, &mut copy, tell).await?);
            }
        }
        Ok(rebuilt)
    });
    let worked = stop.run_until_cancelled(work).await;
    worked.unwrap_or(Err(RepairError::Stopped))
}

/// Folds the log into copies and builds their indexes.
async fn fill(
    log: &EventLog,
    feed: Log,
    copies: &mut [Copy],
    tell: Tell<'_>,
) -> Result<(), RepairError> {
    catch_up(log, feed, copies, tell).await?;
    let end = copies.iter().map(|copy| copy.fold.group.position).max();
    let end = end.unwrap_or_default();
    tell(Progress {
        doing: "building indexes",
        done: end,
        of: end,
    });
    let finishing = copies.iter_mut();
    try_join_all(finishing.map(|copy| copy.layout.finish(&mut copy.session))).await?;
    Ok(())
}

/// Folds the log up to its end, which moves on meanwhile: as far as possible without blocking
/// anyone, so that hardly any row is as recent as the takeover itself. Reads in progress when the
/// takeover begins would not see such rows.
async fn catch_up(
    log: &EventLog,
    feed: Log,
    copies: &mut [Copy],
    tell: Tell<'_>,
) -> Result<(), RepairError> {
    let mut retries = LogRetries::begin();
    loop {
        let each = copies.iter_mut();
        let mut folds: Vec<_> = each
            .map(|copy| (&mut copy.fold, &mut copy.session))
            .collect();
        match come_close(log, feed, &mut folds, tell).await {
            Err(error) if retries.allows(&error).await => {
                for copy in &mut *copies {
                    copy.reload().await?;
                }
            }
            ended => return ended,
        }
    }
}

async fn come_close(
    log: &EventLog,
    feed: Log,
    copies: &mut [(&mut Fold, &mut PgConnection)],
    tell: Tell<'_>,
) -> Result<(), RepairError> {
    let Some((fold, session)) = copies.first_mut() else {
        return Ok(());
    };
    let mut throttle = BulkThrottle::begin(session, fold.pace).await?;
    let (mut close, mut before) = (0, u64::MAX);
    loop {
        let end = log.end(feed).await?.sequence();
        let positions = copies.iter().map(|(fold, _)| fold.group.position);
        let behind = end.saturating_sub(positions.min().unwrap_or(end));
        close += u32::from(behind < CLOSE);
        if behind == 0 || close > CLOSE_ROUNDS {
            return Ok(());
        }
        // With rests, it might never catch up with a log that grows fast.
        let may_rest = behind >= CLOSE && behind < before / 2;
        before = behind;
        let throttle = may_rest.then_some(&mut throttle);
        advance_together(copies, end, throttle, tell).await?;
    }
}

/// Retries until the tables can be locked.
async fn take_over(
    log: &EventLog,
    pool: &PgPool,
    copy: &mut Copy,
    tell: Tell<'_>,
) -> Result<Rebuilt, RepairError> {
    let (mut lock, mut retries) = (LOCK, LogRetries::begin());
    loop {
        match attempt_from_close(log, copy, lock, &mut retries, tell).await {
            Ok(Ok(sequence)) => {
                return Ok(Rebuilt {
                    name: copy.layout.name.to_owned(),
                    position: log.position(copy.fold.log, sequence),
                });
            }
            Ok(Err(Retry::Busy)) => lock = (lock * 2).min(LOCK_MAX),
            Ok(Err(Retry::Late)) => {}
            Err(RepairError::Database(error)) if was_ended(&error) => {
                *copy = open_again(log, pool, copy).await?;
                fill(log, copy.fold.log, slice::from_mut(copy), tell).await?;
            }
            Err(error) => return Err(error),
        }
        tell(Progress {
            doing: "waiting for reads that hold the old rows",
            done: copy.fold.group.position,
            of: copy.fold.group.position,
        });
        sleep(BREATH).await;
    }
}

/// Reopens the copy in another session, once the server has released the previous session's lock.
async fn open_again(log: &EventLog, pool: &PgPool, copy: &Copy) -> Result<Copy, RepairError> {
    let (name, pace) = (copy.layout.name, copy.fold.pace);
    let began = Instant::now();
    loop {
        sleep(BREATH).await;
        match Copy::open(log, pool, name, Role::Successor, pace).await {
            Err(RepairError::UnderWay(_)) if began.elapsed() < RELEASED => {}
            ended => return ended,
        }
    }
}

async fn attempt_from_close(
    log: &EventLog,
    copy: &mut Copy,
    lock: Duration,
    retries: &mut LogRetries,
    tell: Tell<'_>,
) -> Result<Result<u64, Retry>, RepairError> {
    // The previous attempt may have been rolled back.
    copy.reload().await?;
    catch_up(log, copy.fold.log, slice::from_mut(copy), tell).await?;
    match copy.fold.prepare(&mut copy.session).await {
        Err(error) if is_busy(&error) => return Ok(Err(Retry::Busy)),
        prepared => prepared?,
    }
    match attempt(log, copy, lock).await {
        // Catching up has retries of its own: when they run out, the rebuild fails.
        Err(error) if retries.allows(&error).await => Ok(Err(Retry::Late)),
        ended => ended,
    }
}

/// Takes over in one transaction, or changes nothing.
async fn attempt(
    log: &EventLog,
    copy: &mut Copy,
    lock: Duration,
) -> Result<Result<u64, Retry>, RepairError> {
    let Copy {
        layout,
        session,
        fold,
    } = copy;
    let mut transaction = session.begin().await?;
    // A process that is stopped here must not hold up the active projector.
    let timeouts = format!(
        "SET LOCAL idle_in_transaction_session_timeout = {}; SET LOCAL lock_timeout = {}",
        TAKEOVER.as_millis(),
        lock.as_millis()
    );
    run(&mut transaction, timeouts).await?;
    // From here on the active projector waits, before it writes the first row of its next batch.
    let prepared = timeout(TAKEOVER, async {
        let known = layout.checkpoint(&mut transaction, true).await?;
        bring_to(log, fold, &mut transaction, &known).await?;
        layout.lock(&mut transaction).await?;
        let of_copy = checkpoint::all(&mut *transaction).await?;
        layout.replace(&mut transaction).await?;
        let of_copy = of_copy.iter().find(|one| one.name == layout.name);
        let event = of_copy.and_then(|one| one.event_id);
        announce(layout, fold, event, &mut transaction).await?;
        Ok(())
    });
    match prepared.await {
        Ok(Ok(())) => {
            transaction.commit().await?;
            Ok(Ok(fold.group.position))
        }
        Ok(Err(RepairError::Database(error))) if is_busy(&error) => Ok(Err(Retry::Busy)),
        Ok(Err(error)) => Err(error),
        Err(_) => Ok(Err(Retry::Late)),
    }
}

/// Brings the copy to the position of the serving rows, so that no read goes back. Rows of another
/// epoch of the log, or from beyond its end, are useless.
async fn bring_to(
    log: &EventLog,
    fold: &mut Fold,
    rows: &mut PgConnection,
    known: &Checkpoint,
) -> Result<(), RepairError> {
    match known.fits(log, fold.log).await {
        Ok(()) => fold.advance(rows, known.sequence, &|_| ()).await?,
        Err(FeedError::OtherEpoch { .. } | FeedError::WentBack { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    fold.settle(rows).await
}

/// Moves the checkpoint along with the rows. Its generation shows the active projector that these
/// are not the rows it knew.
async fn announce(
    layout: &Layout,
    fold: &Fold,
    event: Option<Uuid>,
    rows: &mut PgConnection,
) -> Result<(), sqlx::Error> {
    let moved = format!(
        "UPDATE {}.projection_checkpoints
         SET epoch = $2, sequence = $3, generation = generation + 1, updated_at = now(),
             event_id = $4
         WHERE name = $1",
        layout.serving
    );
    sqlx::query(sqlx::AssertSqlSafe(moved))
        .bind(layout.name)
        .bind(i64::from(fold.group.epoch))
        .bind(bigint(fold.group.position))
        .bind(event)
        .execute(&mut *rows)
        .await?;
    // Unlike a step, this may move the position back, if the log has lost its end.
    sqlx::query!("SELECT pg_notify($1, $2)", CHANNEL, "rebuilt")
        .execute(rows)
        .await?;
    Ok(())
}

/// Whether a lock could not be acquired in time.
fn is_busy(error: &sqlx::Error) -> bool {
    has_code(error, &["55P03", "40P01"])
}

/// Whether the session is gone: the server ended it because it was idle in a transaction for too
/// long on a busy machine, or the connection was cut.
fn was_ended(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Io(_)) || has_code(error, &["25P03"])
}
