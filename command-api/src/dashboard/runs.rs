//! `POST /dashboard/workflows/{id}/run`: starts a run by hand.

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use schemas::RunId;
use serde::Serialize;
use service::{HttpError, RequestContext};

use super::origin::OnPage;
use crate::workflows::run_now;
use crate::{App, Done, answer};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Started {
    run_id: RunId,
}

pub(super) async fn run_workflow(
    OnPage(staff): OnPage,
    State(app): State<App>,
    Path(id): Path<String>,
    context: RequestContext,
    request: Request,
) -> Result<Response, HttpError> {
    let Done {
        answer: run_id,
        position,
    } = run_now(&app, &staff.org, id, context, request).await?;
    let answer = Started { run_id };
    Ok(answer::json(
        StatusCode::ACCEPTED,
        Done { answer, position },
    ))
}
