//! `POST /api/v1/runs/{runId}/retry`: continues a run that has failed or was cancelled.

use access::{Authorized, scope};
use axum::extract::{Path, State};
use axum::response::Response;
use domain::run::{NotRetryable, Run};
use schemas::{OrgId, RunId};
use service::HttpError;

use super::change::{Unchanged, accepted, change};
use crate::body::AnyBody;
use crate::commands::Earlier;
use crate::repeatable::Repeatable;
use crate::{App, CommandError, Commands, Done, Origin};

/// Continues a run from the steps that failed.
pub async fn retry(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    run_id: &RunId,
) -> Result<Done<()>, CommandError<Unchanged<NotRetryable>>> {
    let retry = |run: &Run| domain::run::retry(run).map(Some);
    change(commands, origin, org, run_id, retry).await
}

pub(super) async fn retry_run(
    caller: Authorized<scope::WriteWorkflows>,
    State(app): State<App>,
    Path(run_id): Path<RunId>,
    repeatable: Repeatable,
    body: AnyBody,
) -> Result<Response, HttpError> {
    let origin = repeatable.by_key(&caller, &body);
    // A repeat opens no further run: it gets the first answer, however many are open by now.
    let earlier = app.commands.earlier::<Unchanged<NotRetryable>>(&origin);
    if let Earlier::Repeat(repeated) = earlier.await? {
        return Ok(accepted(run_id, repeated.done(drop)));
    }
    let room = app.open_runs.admit(&caller.org);
    room.map_err(|full| HttpError::conflict(full.to_string()))?;
    let done = retry(&app.commands, &origin, &caller.org, &run_id).await?;
    Ok(accepted(run_id, done))
}
