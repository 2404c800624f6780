//! `DELETE /api/v1/webhooks/{id}`: deletes an endpoint.

use access::{Authorized, scope};
use axum::extract::{Path, State};
use axum::response::Response;
use domain::webhook;
use schemas::WebhookId;
use service::HttpError;

use super::request;
use crate::commands::Decision;
use crate::{App, Origin, answer};

pub(super) async fn delete_webhook(
    caller: Authorized<scope::ManageWebhooks>,
    State(app): State<App>,
    Path(id): Path<WebhookId>,
    origin: Origin,
) -> Result<Response, HttpError> {
    let deleted = request::execute(&app, &origin, (&caller.org, &id), |known| {
        Decision::new((), Some(webhook::delete(&known.endpoint)))
    });
    let done = deleted.await?;
    app.webhooks.forget(&caller.org, &id);
    Ok(answer::no_content(&done))
}
