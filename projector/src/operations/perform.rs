//! The work itself: the same functions as `waypost projection` uses.

use std::time::Duration;

use domain::operation::OperationKind;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::store::{Done, Operation, Outcome};
use crate::Dependencies;
use crate::bulk_throttle::Pace;
use crate::copy::{Progress, Tell};
use crate::dead_letters::repair::repair_each;
use crate::error::RepairError;
use crate::rebuild::rebuild;
use crate::verify::verify;

/// Wait while another process fills the same copy, such as one that was just killed.
const WAIT: Duration = Duration::from_secs(1);
/// Dead letters that are repaired between two reports of the progress.
const DEAD_LETTERS_AT_ONCE: usize = 100;

/// Performs an operation; `None` if it was stopped.
pub(super) async fn perform(
    deps: &Dependencies,
    operation: &Operation,
    tell: Tell<'_>,
    stop: &CancellationToken,
) -> Option<Done> {
    loop {
        let work = Box::pin(once(deps, operation, tell, stop));
        let worked = match operation.kind {
            // When stopped, it drops its copy before it ends.
            OperationKind::Verify => work.await,
            _ => stop.run_until_cancelled(work).await?,
        };
        match worked {
            Ok(done) => return Some(done),
            Err(RepairError::Stopped) => return None,
            Err(RepairError::UnderWay(_)) => {
                tell(Progress {
                    doing: "waiting for another process that rebuilds or verifies it",
                    done: 0,
                    of: 0,
                });
                stop.run_until_cancelled(sleep(WAIT)).await?;
            }
            Err(error) => return Some(failed(operation, &error)),
        }
    }
}

/// A database error may quote what is in a row, so it is written only to this process' log.
fn failed(operation: &Operation, error: &RepairError) -> Done {
    let (kind, projection) = (operation.kind.as_str(), &operation.projection);
    tracing::error!(%error, kind, projection, "What an operator asked for has failed");
    let told = match error {
        RepairError::Database(_) => {
            "the database refused or does not answer; the projector's log says more".to_owned()
        }
        error => error.to_string(),
    };
    Outcome::Failed.told(vec![told])
}

async fn once(
    deps: &Dependencies,
    operation: &Operation,
    tell: Tell<'_>,
    stop: &CancellationToken,
) -> Result<Done, RepairError> {
    let (log, pool) = (&deps.log, &deps.pool);
    let name = operation.projection.as_str();
    let pace = Pace {
        batch: deps.settings.batch,
        ..Pace::default()
    };
    match operation.kind {
        OperationKind::Rebuild => {
            rebuild(log, pool, &[name], pace, tell, stop).await?;
            let told = vec!["the rebuilt rows are what is read now".to_owned()];
            Ok(Outcome::Succeeded.told(told))
        }
        OperationKind::Verify => {
            let verified = verify(log, pool, &*deps.clock, name, pace, tell, stop).await?;
            let outcome = match verified.differences {
                0 => Outcome::Succeeded,
                _ => Outcome::Differs,
            };
            let mut told = vec![count(verified.differences, "difference")];
            told.extend(verified.reported);
            Ok(outcome.told(told))
        }
        OperationKind::Retry => repair_dead_letters(deps, operation, tell, false).await,
        OperationKind::Skip => repair_dead_letters(deps, operation, tell, true).await,
    }
}

async fn repair_dead_letters(
    deps: &Dependencies,
    operation: &Operation,
    tell: Tell<'_>,
    skip: bool,
) -> Result<Done, RepairError> {
    let doing = if skip { "skipping" } else { "retrying" };
    let (mut applied, mut stuck, mut gone) = (0, 0, 0);
    let of = operation.letters.len() as u64;
    // After a kill it starts over: letters that were done by then are no dead letters any more.
    let mut done = 0;
    for some in operation.letters.chunks(DEAD_LETTERS_AT_ONCE) {
        tell(Progress { doing, done, of });
        let name = &operation.projection;
        for one in repair_each(&deps.log, &deps.pool, name, some, skip).await? {
            match one {
                Ok(repaired) => {
                    applied += repaired.applied as u64;
                    stuck += u64::from(repaired.reason.is_some());
                }
                Err(_) => gone += 1,
            }
        }
        done += some.len() as u64;
    }
    tell(Progress { doing, done, of });
    let mut told = vec![format!("{} applied", count(applied, "event"))];
    if skip {
        told.push(format!("{} skipped", count(of - gone, "dead letter")));
    }
    if stuck > 0 {
        told.push(format!(
            "{} still cannot be applied",
            count(stuck, "subject")
        ));
    }
    if gone > 0 {
        told.push(format!("{} no dead letter any more", count(gone, "event")));
    }
    let outcome = if stuck > 0 {
        Outcome::Failed
    } else {
        Outcome::Succeeded
    };
    Ok(outcome.told(told))
}

fn count(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}
