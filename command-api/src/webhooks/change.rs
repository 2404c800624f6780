//! `PATCH /api/v1/webhooks/{id}`: changes an endpoint.

use access::{Authorized, scope};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use domain::webhook::{self, ChangeRequest};
use schemas::{OrgId, WebhookId};
use service::HttpError;

use super::{Directory, Webhook, request};
use crate::body::JsonBody;
use crate::commands::Decision;
use crate::{App, CommandError, Commands, Done, NotFound, Origin, Refusal, answer};

/// Changes an endpoint; what the request does not name stays.
async fn change(
    commands: &Commands,
    webhooks: &Directory,
    origin: &Origin,
    (org, id): (&OrgId, &WebhookId),
    request: &ChangeRequest,
) -> Result<Done<Webhook>, CommandError<NotFound>> {
    let stream = request::stream(org, id);
    let plan = || async {
        let known = webhooks.find(commands.log(), &stream).await?;
        let known = known.ok_or(CommandError::Refused(NotFound("webhook")))?;
        let (endpoint, event) = webhook::change(&known.endpoint, request.clone());
        let decision = Decision::new(Webhook::new(endpoint, known.created_at), event);
        let stands = (&stream, Some(known.last));
        Ok(commands.planned(origin, commands.now(), stands, "", decision))
    };
    commands.execute_plan(plan).await
}

pub(super) async fn change_webhook(
    caller: Authorized<scope::ManageWebhooks>,
    State(app): State<App>,
    Path(id): Path<WebhookId>,
    origin: Origin,
    body: JsonBody,
) -> Result<Response, HttpError> {
    let request = ChangeRequest::parse(body.value()?, &app.open_targets);
    let request = request.map_err(Refusal::into_http)?;
    let done = change(
        &app.commands,
        &app.webhooks,
        &origin,
        (&caller.org, &id),
        &request,
    )
    .await?;
    Ok(answer::json(StatusCode::OK, done))
}
