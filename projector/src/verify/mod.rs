//! Checks that a projection's rows match the log, while they are in use.

mod difference;
mod tables;

use std::time::Duration;

use event_log::{EventLog, Position};
use serde::Serialize;
use service::Clock;
use sqlx::{Connection as _, PgPool};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use self::difference::Words;
use self::tables::{Comparison, compare};
use crate::bulk_throttle::{BulkThrottle, Pace};
use crate::copy::{Copy, LogRetries, Progress, Tell, advance_together};
use crate::error::RepairError;
use crate::projection::Role;

/// A difference may be a change in progress, such as the forgetting of a person: it destroys a key
/// at one moment and deletes rows at another. It counts if it is still there after this time.
const AGAIN: Duration = Duration::from_secs(1);

/// The result of a check.
#[derive(Clone, Debug, Serialize)]
pub struct Verified {
    /// The projection.
    pub name: String,
    /// The number of rows that differ.
    pub differences: u64,
    /// Some of them, in words without personal data.
    #[serde(skip)]
    pub reported: Vec<String>,
    /// The position in the log at which the rows were compared.
    #[serde(skip)]
    pub position: Position,
}

/// Folds the log into a scratch copy, up to the projection's position, and compares row by row.
/// Reads, commands and the projector continue. If stopped by `stop`, it leaves nothing behind.
///
/// # Errors
/// If the log or the database does not answer, the projection was not folded from this log, or it
/// was stopped.
pub async fn verify(
    log: &EventLog,
    pool: &PgPool,
    clock: &dyn Clock,
    name: &str,
    pace: Pace,
    tell: Tell<'_>,
    stop: &CancellationToken,
) -> Result<Verified, RepairError> {
    let mut copy = Box::pin(Copy::open(log, pool, name, Role::Scratch, pace)).await?;
    let checking = Box::pin(async {
        let mut retries = LogRetries::begin();
        loop {
            match check(log, clock, &mut copy, tell).await {
                Err(error) if retries.allows(&error).await => copy.reload().await?,
                checked => return checked,
            }
        }
    });
    let Some(verified) = stop.run_until_cancelled(checking).await else {
        copy.abandon(pool).await?;
        return Err(RepairError::Stopped);
    };
    copy.layout.drop(&mut copy.session).await?;
    verified
}

async fn check(
    log: &EventLog,
    clock: &dyn Clock,
    copy: &mut Copy,
    tell: Tell<'_>,
) -> Result<Verified, RepairError> {
    let mut verified = None;
    let mut throttle = BulkThrottle::begin(&mut copy.session, copy.fold.pace).await?;
    for last in [false, true] {
        let to = target(log, copy).await?;
        let fold = &mut [(&mut copy.fold, &mut copy.session)];
        advance_together(fold, to, Some(&mut throttle), tell).await?;
        let found = compare_now(log, clock, copy, tell).await?;
        let differ = found.differences > 0;
        if differ && !last {
            sleep(AGAIN).await;
        }
        verified = Some(found);
        if !differ {
            break;
        }
    }
    verified.ok_or_else(|| RepairError::Unfit("nothing was compared".to_owned()))
}

/// Returns the projection's position, which must be within this log and not before the copy's.
async fn target(log: &EventLog, copy: &mut Copy) -> Result<u64, RepairError> {
    let known = copy.layout.checkpoint(&mut copy.session, false).await?;
    known.fits(log, copy.fold.log).await?;
    if known.sequence < copy.fold.group.position {
        let name = copy.layout.name;
        return Err(RepairError::Unfit(format!(
            "{name} was reset meanwhile: try again"
        )));
    }
    Ok(known.sequence)
}

/// Folds the rest and compares, all within one snapshot of the database.
async fn compare_now(
    log: &EventLog,
    clock: &dyn Clock,
    copy: &mut Copy,
    tell: Tell<'_>,
) -> Result<Verified, RepairError> {
    let Copy {
        layout,
        session,
        fold,
    } = copy;
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ";
    let mut transaction = session.begin_with(begin).await?;
    let known = layout.checkpoint(&mut transaction, false).await?;
    known.fits(log, fold.log).await?;
    fold.advance(&mut transaction, known.sequence, tell).await?;
    fold.settle(&mut transaction).await?;
    tell(Progress {
        doing: "comparing rows",
        done: known.sequence,
        of: known.sequence,
    });
    let lives_by = fold
        .group
        .members
        .iter()
        .find_map(|member| member.projection.lives_by());
    let limit = lives_by.zip(log.age_limit(fold.log));
    let words = Words::new(log);
    let comparing = compare(&mut transaction, layout, limit, clock.now(), &words);
    let Comparison {
        differences,
        reported,
    } = comparing.await?;
    transaction.commit().await?;
    Ok(Verified {
        name: layout.name.to_owned(),
        differences,
        reported,
        position: log.position(fold.log, known.sequence),
    })
}
