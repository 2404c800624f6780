//! `POST /api/v1/runs/{runId}/cancel`: cancels a run.

use access::{Authorized, scope};
use axum::extract::{Path, State};
use axum::response::Response;
use domain::run::NotCancellable;
use schemas::{OrgId, RunId};
use service::HttpError;

use super::change::{Unchanged, accepted, change};
use crate::body::AnyBody;
use crate::repeatable::Repeatable;
use crate::{App, CommandError, Commands, Done, Origin};

/// Cancels a run; one that is already cancelled stays so.
pub async fn cancel(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    run_id: &RunId,
) -> Result<Done<()>, CommandError<Unchanged<NotCancellable>>> {
    change(commands, origin, org, run_id, domain::run::cancel).await
}

pub(super) async fn cancel_run(
    caller: Authorized<scope::WriteWorkflows>,
    State(app): State<App>,
    Path(run_id): Path<RunId>,
    repeatable: Repeatable,
    body: AnyBody,
) -> Result<Response, HttpError> {
    let origin = repeatable.by_key(&caller, &body);
    let done = cancel(&app.commands, &origin, &caller.org, &run_id).await?;
    Ok(accepted(run_id, done))
}
