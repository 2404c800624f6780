//! `POST /api/v1/webhooks/{id}/test`: sends one delivery to this endpoint alone.

use access::{Authorized, scope};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use domain::webhook;
use schemas::{DeliveryId, OrgId, WebhookId};
use serde::Serialize;
use service::HttpError;

use super::Directory;
use super::request::{self, Refused};
use crate::body::AnyBody;
use crate::commands::Outcome;
use crate::repeatable::Repeatable;
use crate::{App, CommandError, Commands, Done, Origin, answer};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tested {
    delivery_id: DeliveryId,
}

/// Requests a test delivery. The runner makes it from the event that this appends.
async fn test(
    commands: &Commands,
    webhooks: &Directory,
    origin: &Origin,
    (org, id): (&OrgId, &WebhookId),
) -> Result<Done<Tested>, CommandError<Refused>> {
    let delivery = |event| commands.log().keyring().delivery_id(id, event);
    let stream = request::stream(org, id);
    let asked = request::carry_out(
        commands,
        webhooks,
        origin,
        &stream,
        |event| delivery(event.id).into_string(),
        |endpoint, _| Ok(webhook::test(endpoint)?),
    );
    let delivery_id = match asked.await? {
        Outcome::First(done) => done.map(|event| delivery(event.id)),
        Outcome::Repeat(repeated) => repeated.done(DeliveryId::new),
    };
    Ok(delivery_id.map(|delivery_id| Tested { delivery_id }))
}

pub(super) async fn test_webhook(
    caller: Authorized<scope::ManageWebhooks>,
    State(app): State<App>,
    Path(id): Path<WebhookId>,
    repeatable: Repeatable,
    body: AnyBody,
) -> Result<Response, HttpError> {
    let origin = repeatable.by_key(&caller, &body);
    let done = test(&app.commands, &app.webhooks, &origin, (&caller.org, &id)).await?;
    Ok(answer::json(StatusCode::ACCEPTED, done))
}
