//! `POST /api/v1/webhooks/{id}/test`: sends one delivery to this endpoint alone.

use access::{Authorized, scope};
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use domain::webhook;
use schemas::{DeliveryId, OrgId, WebhookId};
use serde::Serialize;
use service::{HttpError, RequestContext};

use super::request::{self, Refused};
use crate::commands::Outcome;
use crate::idempotency::IdempotencyKey;
use crate::{App, CommandError, Commands, Done, Origin, answer, body};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tested {
    delivery_id: DeliveryId,
}

/// Has the endpoint tried out. The runner makes a delivery of the event that this appends.
async fn test(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    id: &WebhookId,
) -> Result<Done<Tested>, CommandError<Refused>> {
    let delivery = |event| commands.log().keyring().delivery_id(id, event);
    let asked = request::append(
        commands,
        origin,
        (org, id),
        |event| delivery(event.id).into_string(),
        |endpoint, _| Ok(webhook::test(endpoint)?),
    );
    let (delivery_id, position) = match asked.await? {
        Outcome::First(done) => (delivery(done.answer.id), done.position),
        Outcome::Repeat(repeated) => (DeliveryId::from(repeated.holder), repeated.position),
    };
    let answer = Tested { delivery_id };
    Ok(Done { answer, position })
}

pub(super) async fn test_webhook(
    caller: Authorized<scope::ManageWebhooks>,
    State(app): State<App>,
    Path(id): Path<String>,
    context: RequestContext,
    idempotency_key: IdempotencyKey,
    request: Request,
) -> Result<Response, HttpError> {
    let bytes = service::body::read(request, body::MAX_OBJECT_BYTES).await?;
    let receipt = idempotency_key.receipt(app.commands.log(), &caller, &bytes);
    let origin = Origin::of(&context).with_receipt(receipt);
    let done = test(&app.commands, &origin, &caller.org, &WebhookId::new(id)).await?;
    Ok(answer::json(StatusCode::ACCEPTED, done))
}
