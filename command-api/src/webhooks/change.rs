//! `PATCH /api/v1/webhooks/{id}`: changes an endpoint.

use access::{Authorized, scope};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use domain::webhook::{self, ChangeRequest, Endpoint};
use schemas::{AggregateType, OrgId, StreamId, WebhookId};
use service::HttpError;

use super::Webhook;
use crate::body::JsonBody;
use crate::commands::{Decision, Past};
use crate::{App, CommandError, Commands, Done, NotFound, Origin, Refusal, answer};

/// Changes an endpoint; what the request does not name stays.
pub async fn change(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    id: &WebhookId,
    request: &ChangeRequest,
) -> Result<Done<Webhook>, CommandError<NotFound>> {
    let stream = StreamId::new(org, AggregateType::Webhook, id.as_str());
    let changed = commands.execute(origin, &stream, Past::Whole, |past, now| {
        let endpoint = Endpoint::fold(past.iter().map(|recorded| &recorded.event));
        let endpoint = endpoint.ok_or(NotFound("webhook"))?;
        let created_at = past.first().map_or(now, |first| first.time);
        let (endpoint, event) = webhook::change(&endpoint, request.clone());
        Ok(Decision::new(Webhook::new(endpoint, created_at), event))
    });
    changed.await
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
    let done = change(&app.commands, &origin, &caller.org, &id, &request).await?;
    Ok(answer::json(StatusCode::OK, done))
}
