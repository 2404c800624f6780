//! `POST /api/v1/runs/{runId}/retry`: lets a run that has failed or was called off go on.

use access::{Authorized, scope};
use axum::extract::{Path, State};
use axum::response::Response;
use domain::run::{NotRetryable, Run};
use schemas::{OrgId, RunId};
use service::HttpError;

use super::change::{accepted, change};
use crate::body::AnyBody;
use crate::repeatable::Repeatable;
use crate::{App, CommandError, Commands, Done, Origin, Refusal};

/// Why a run is not retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRetried {
    /// There is none.
    #[error("there is no such run")]
    NoRun,
    /// It is under way or has ended well.
    #[error(transparent)]
    State(#[from] NotRetryable),
}

impl Refusal for NotRetried {
    fn into_http(self) -> HttpError {
        match self {
            Self::NoRun => HttpError::not_found(self.to_string()),
            Self::State(_) => HttpError::conflict(self.to_string()),
        }
    }
}

/// Lets a run go on from the steps that failed.
pub async fn retry(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    run_id: &RunId,
) -> Result<Done<()>, CommandError<NotRetried>> {
    change(commands, origin, org, run_id, |past| {
        let run = Run::fold(past).map_err(|_| NotRetried::NoRun)?;
        Ok(Some(domain::run::retry(&run)?))
    })
    .await
}

pub(super) async fn retry_run(
    caller: Authorized<scope::WriteWorkflows>,
    State(app): State<App>,
    Path(run_id): Path<RunId>,
    repeatable: Repeatable,
    body: AnyBody,
) -> Result<Response, HttpError> {
    let origin = repeatable.by_key(&caller, &body);
    let done = retry(&app.commands, &origin, &caller.org, &run_id).await?;
    Ok(accepted(run_id, done.position))
}
