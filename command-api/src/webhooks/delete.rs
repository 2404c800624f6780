//! `DELETE /api/v1/webhooks/{id}`: deletes an endpoint.

use access::{Authorized, scope};
use axum::extract::{Path, State};
use axum::response::Response;
use domain::webhook;
use schemas::{OrgId, WebhookId};
use service::HttpError;

use super::{Directory, request};
use crate::commands::Decision;
use crate::{App, CommandError, Commands, Done, NotFound, Origin, answer};

/// Deletes an endpoint.
async fn delete(
    commands: &Commands,
    webhooks: &Directory,
    origin: &Origin,
    (org, id): (&OrgId, &WebhookId),
) -> Result<Done<()>, CommandError<NotFound>> {
    let stream = request::stream(org, id);
    let plan = || async {
        let known = webhooks.find(commands.log(), &stream).await?;
        let known = known.ok_or(CommandError::Refused(NotFound("webhook")))?;
        let decision = Decision::new((), Some(webhook::delete(&known.endpoint)));
        let stands = (&stream, Some(known.last));
        Ok(commands.planned(origin, commands.now(), stands, "", decision))
    };
    let done = commands.execute_plan(plan).await?;
    webhooks.forget(org, id);
    Ok(done)
}

pub(super) async fn delete_webhook(
    caller: Authorized<scope::ManageWebhooks>,
    State(app): State<App>,
    Path(id): Path<WebhookId>,
    origin: Origin,
) -> Result<Response, HttpError> {
    let done = delete(&app.commands, &app.webhooks, &origin, (&caller.org, &id)).await?;
    Ok(answer::no_content(&done))
}
