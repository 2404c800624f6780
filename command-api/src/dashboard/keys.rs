//! `POST /dashboard/keys`, `DELETE /dashboard/keys/{keyId}`: API keys, by hand.

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::key::Request as KeyRequest;
use schemas::KeyId;
use service::{HttpError, RequestContext};

use super::origin::OnPage;
use crate::accounts::NOT_KEPT;
use crate::keys::{Giver, create, revoke, until_known};
use crate::{App, Origin, answer, body};

/// Whoever owns an organization can give every scope.
pub(super) async fn create_key(
    OnPage(staff): OnPage,
    State(app): State<App>,
    context: RequestContext,
    request: Request,
) -> Result<Response, HttpError> {
    let bytes = body::read_json(request, body::MAX_OBJECT_BYTES).await?;
    let request = body::read_as(&bytes, KeyRequest::parse)?;
    let origin = Origin::of(&context);
    let done = create(&app.commands, &origin, &staff.org, Giver::Operator, request).await?;
    until_known(&app.access, &done.answer.key).await;
    Ok((NOT_KEPT, answer::json(StatusCode::CREATED, done)).into_response())
}

pub(super) async fn revoke_key(
    OnPage(staff): OnPage,
    State(app): State<App>,
    Path(id): Path<String>,
    context: RequestContext,
) -> Result<Response, HttpError> {
    let origin = Origin::of(&context);
    let done = revoke(&app.commands, &origin, &staff.org, &KeyId::new(id)).await?;
    Ok(answer::no_content(&done))
}
