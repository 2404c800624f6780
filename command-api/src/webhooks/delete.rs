//! `DELETE /api/v1/webhooks/{id}`: deletes an endpoint.

use access::{Authorized, scope};
use axum::extract::{Path, State};
use axum::response::Response;
use domain::webhook::{self, Endpoint};
use schemas::{AggregateType, OrgId, StreamId, WebhookId};
use service::HttpError;

use crate::commands::{Decision, Past};
use crate::{App, CommandError, Commands, Done, NotFound, Origin, answer};

/// Deletes an endpoint.
pub async fn delete(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    id: &WebhookId,
) -> Result<Done<()>, CommandError<NotFound>> {
    let stream = StreamId::new(org, AggregateType::Webhook, id.as_str());
    let deleted = commands.execute(origin, &stream, Past::Whole, |past, _| {
        let endpoint = Endpoint::fold(past.iter().map(|recorded| &recorded.event));
        let endpoint = endpoint.ok_or(NotFound("webhook"))?;
        Ok(Decision::new((), Some(webhook::delete(&endpoint))))
    });
    deleted.await
}

pub(super) async fn delete_webhook(
    caller: Authorized<scope::ManageWebhooks>,
    State(app): State<App>,
    Path(id): Path<WebhookId>,
    origin: Origin,
) -> Result<Response, HttpError> {
    let done = delete(&app.commands, &origin, &caller.org, &id).await?;
    app.webhooks.forget(&caller.org, &id);
    Ok(answer::no_content(&done))
}
