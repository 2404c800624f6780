//! `POST /dashboard/workflows/{id}/run`: starts a run by hand.

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use service::HttpError;

use super::origin::OnPage;
use crate::workflows::run_now;
use crate::{App, Origin, answer};

pub(super) async fn run_workflow(
    OnPage(staff): OnPage,
    State(app): State<App>,
    Path(id): Path<String>,
    origin: Origin,
    request: Request,
) -> Result<Response, HttpError> {
    let done = run_now(&app, &staff.org, id, origin, request).await?;
    Ok(answer::json(StatusCode::ACCEPTED, done))
}
