//! What operators request on the system page: requested as a row, performed here, one of each kind
//! of work at a time over all processes. A process that is killed leaves the row open, and the next
//! projector continues it.

mod perform;
mod store;

use std::time::Duration;

use domain::operation::OperationKind;
use metrics::counter;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use self::perform::perform;
use self::store::{Done, Operation, Session};
use crate::Dependencies;
use crate::connect::Connector;
use crate::copy::Progress;

/// How often to check for requests.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How often the progress is saved, and a cancellation is checked for.
const TELL_EVERY: Duration = Duration::from_millis(250);

/// Operations that are performed one after another; dead letters do not wait for a rebuild.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Queue {
    /// Work through a whole log.
    Projections,
    /// Dead letters.
    DeadLetters,
}

impl Queue {
    pub(crate) const ALL: [Self; 2] = [Self::Projections, Self::DeadLetters];

    fn kinds(self) -> Vec<String> {
        let about_letters = matches!(self, Self::DeadLetters);
        let all = OperationKind::ALL.into_iter();
        let kinds = all.filter(|kind| kind.is_about_letters() == about_letters);
        kinds.map(|kind| kind.as_str().to_owned()).collect()
    }
}

/// Performs requested operations until `shutdown`.
pub(crate) async fn keep_performing(deps: Dependencies, queue: Queue, shutdown: CancellationToken) {
    let performing = async {
        loop {
            match next(&deps, queue, &shutdown).await {
                Ok(true) => {}
                Ok(false) => sleep(LOOK_EVERY).await,
                Err(error) => {
                    tracing::debug!(%error, "Operations on projections are looked for again");
                    sleep(LOOK_EVERY * 4).await;
                }
            }
        }
    };
    shutdown.run_until_cancelled(performing).await;
}

/// Performs the next operation; returns `false` if there is none for this process.
async fn next(
    deps: &Dependencies,
    queue: Queue,
    shutdown: &CancellationToken,
) -> Result<bool, sqlx::Error> {
    let kinds = queue.kinds();
    if !store::is_any_open(&deps.pool, &kinds).await? {
        return Ok(false);
    }
    let connector = Connector::new(&deps.pool, deps.settings.takeover);
    let Some(mut session) = Session::open(&connector, queue).await? else {
        sleep(deps.settings.takeover / 2).await;
        return Ok(false);
    };
    let Some(operation) = session.begin(&kinds).await? else {
        return Ok(false);
    };
    let (kind, projection) = (operation.kind.as_str(), operation.projection.as_str());
    tracing::info!(kind, projection, "Performing what an operator asked for");
    let done = carry_out(deps, &mut session, &operation, shutdown).await?;
    // If it was stopped with its process, the next process continues it.
    if let Some(done) = done {
        session.end(&operation, &done).await?;
        let outcome = done.outcome.as_str();
        tracing::info!(kind, projection, outcome, "An operation has ended");
        counter!("waypost_projection_operations_total", "kind" => kind.to_owned(),
                 "outcome" => outcome.to_lowercase())
        .increment(1);
    }
    session.close().await?;
    Ok(true)
}

/// Performs an operation, and meanwhile reports its progress. It stops if the progress cannot be
/// saved: another process may have taken over.
async fn carry_out(
    deps: &Dependencies,
    session: &mut Session,
    operation: &Operation,
    shutdown: &CancellationToken,
) -> Result<Option<Done>, sqlx::Error> {
    let stop = shutdown.child_token();
    let begun = Progress {
        doing: "starting",
        done: operation.done,
        of: operation.total,
    };
    let (telling, told) = watch::channel(begun);
    let tell = move |progress| {
        telling.send_replace(progress);
    };
    let work = perform(deps, operation, &tell, &stop);
    let mut work = std::pin::pin!(work);
    let mut is_cancelled = operation.is_cancelled;
    let every = TELL_EVERY.min(deps.settings.takeover / 4);
    loop {
        if is_cancelled {
            stop.cancel();
        }
        tokio::select! {
            done = &mut work => {
                let last = *told.borrow();
                session.save_progress(operation, last).await?;
                let stopped = done.is_none() && !shutdown.is_cancelled();
                return Ok(if stopped { Some(Done::cancelled()) } else { done });
            }
            () = sleep(every) => {
                let now = *told.borrow();
                is_cancelled = session.save_progress(operation, now).await?;
            }
        }
    }
}
