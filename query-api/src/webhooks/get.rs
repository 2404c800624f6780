//! `GET /api/v1/webhooks/{id}`

use access::scope;
use axum::Json;
use schemas::OrgId;
use service::HttpError;
use sqlx::PgPool;

use super::Webhook;
use crate::progress::Projection;
use crate::reading::{Reading, ResourceId};

pub(super) async fn get_webhook(
    reading: Reading<scope::ManageWebhooks>,
    ResourceId(id): ResourceId,
) -> Result<Json<Webhook>, HttpError> {
    let models = reading.models(&[Projection::Webhooks]).await?;
    let webhook = find_webhook(reading.org(), &id, models).await?;
    webhook.map(Json).ok_or_else(no_webhook)
}

/// Returns a 404 error, whether the endpoint or its deliveries were requested.
pub(crate) fn no_webhook() -> HttpError {
    HttpError::not_found("webhook not found")
}

pub(crate) async fn find_webhook(
    org: &OrgId,
    id: &str,
    models: &PgPool,
) -> Result<Option<Webhook>, sqlx::Error> {
    sqlx::query_as!(
        Webhook,
        "SELECT webhook_id AS id, url, events, description, status, disabled_reason, created_at,
                updated_at
         FROM webhooks WHERE org_id = $1 AND webhook_id = $2",
        org.as_str(),
        id,
    )
    .fetch_optional(models)
    .await
}
