//! `POST /dashboard/keys`, `DELETE /dashboard/keys/{keyId}`: API keys, by hand.

use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use domain::key::UncheckedRequest;
use schemas::KeyId;
use service::HttpError;

use super::origin::OnPage;
use crate::accounts::NOT_KEPT;
use crate::body::JsonBody;
use crate::keys::{Giver, create, full, given, revoke, until_known};
use crate::{App, Origin, answer};

/// The owner of an organization can grant every scope.
pub(super) async fn create_key(
    OnPage(staff): OnPage,
    State(app): State<App>,
    origin: Origin,
    body: JsonBody,
) -> Result<Response, HttpError> {
    let request = UncheckedRequest::read(body.value()?);
    let giver = Giver::Owner(full(&app, &staff.org));
    let done = create(&app.commands, &origin, &staff.org, giver, request).await?;
    until_known(&app.access, &done.answer.key).await;
    Ok((NOT_KEPT, answer::json(StatusCode::CREATED, done)).into_response())
}

pub(super) async fn revoke_key(
    OnPage(staff): OnPage,
    State(app): State<App>,
    Path(id): Path<KeyId>,
    uri: Uri,
    origin: Origin,
) -> Result<Response, HttpError> {
    let given = given(&uri)?;
    let done = revoke(&app.commands, &origin, &staff.org, &id, given).await?;
    Ok(answer::no_content(&done))
}
