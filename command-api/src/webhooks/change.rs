//! `PATCH /api/v1/webhooks/{id}`: changes an endpoint; fields that the request does not name stay.

use access::{Authorized, scope};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use domain::webhook::{self, ChangeRequest};
use schemas::WebhookId;
use service::HttpError;

use super::{Webhook, request};
use crate::body::JsonBody;
use crate::commands::Decision;
use crate::{App, Origin, Refusal, answer};

pub(super) async fn change_webhook(
    caller: Authorized<scope::ManageWebhooks>,
    State(app): State<App>,
    Path(id): Path<WebhookId>,
    origin: Origin,
    body: JsonBody,
) -> Result<Response, HttpError> {
    let request = ChangeRequest::parse(body.value()?, &app.open_targets);
    let request = request.map_err(Refusal::into_http)?;
    let changed = request::execute(&app, &origin, (&caller.org, &id), |known| {
        let (endpoint, event) = webhook::change(&known.endpoint, request.clone());
        Decision::new(Webhook::new(endpoint, known.created_at), event)
    });
    Ok(answer::json(StatusCode::OK, changed.await?))
}
