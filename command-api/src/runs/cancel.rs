//! `POST /api/v1/runs/{runId}/cancel`: calls a run off.

use access::{Authorized, scope};
use axum::extract::{Path, State};
use axum::response::Response;
use domain::run::{NotCancellable, Run};
use schemas::{OrgId, RunId};
use service::HttpError;

use super::change::{accepted, change};
use crate::body::AnyBody;
use crate::repeatable::Repeatable;
use crate::{App, CommandError, Commands, Done, Origin, Refusal};

/// Why a run is not called off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCancelled {
    /// There is none.
    #[error("there is no such run")]
    NoRun,
    /// It has ended by itself.
    #[error(transparent)]
    Ended(#[from] NotCancellable),
}

impl Refusal for NotCancelled {
    fn into_http(self) -> HttpError {
        match self {
            Self::NoRun => HttpError::not_found(self.to_string()),
            Self::Ended(_) => HttpError::conflict(self.to_string()),
        }
    }
}

/// Calls a run off; one that has been called off already stays so.
pub async fn cancel(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    run_id: &RunId,
) -> Result<Done<()>, CommandError<NotCancelled>> {
    change(commands, origin, org, run_id, |past| {
        let run = Run::fold(past).map_err(|_| NotCancelled::NoRun)?;
        Ok(domain::run::cancel(&run)?)
    })
    .await
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
    Ok(accepted(run_id, done.position))
}
