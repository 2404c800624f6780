//! `GET /api/v1/webhooks`

use access::scope;
use axum::http::Uri;
use axum::response::Response;
use schemas::OrgId;
use service::HttpError;
use sqlx::PgPool;

use super::Webhook;
use crate::paging::{Page, Parameters};
use crate::progress::Projection;
use crate::reading::Reading;

pub(super) async fn list_webhooks(
    reading: Reading<scope::ManageWebhooks>,
    uri: Uri,
) -> Result<Response, HttpError> {
    let page = Page::asked_for(&Parameters::of(&uri)?)?;
    let models = reading.models(&[Projection::Webhooks]).await?;
    let total = count_webhooks(reading.org(), models).await?;
    let webhooks = find_webhooks(reading.org(), &page, models).await?;
    Ok(page.answer(&uri, webhooks, total))
}

async fn count_webhooks(org: &OrgId, models: &PgPool) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT count(*) AS "total!" FROM webhooks WHERE org_id = $1"#,
        org.as_str(),
    )
    .fetch_one(models)
    .await
}

pub(crate) async fn find_webhooks(
    org: &OrgId,
    page: &Page,
    models: &PgPool,
) -> Result<Vec<Webhook>, sqlx::Error> {
    sqlx::query_as!(
        Webhook,
        "SELECT webhook_id AS id, url, events, description, status, disabled_reason, created_at,
                updated_at
         FROM webhooks
         WHERE org_id = $1 AND created_at <= coalesce($2::timestamptz, 'infinity')
           AND (created_at < coalesce($2::timestamptz, 'infinity') OR webhook_id > $3)
         ORDER BY created_at DESC, webhook_id OFFSET $4 LIMIT $5",
        org.as_str(),
        page.after_time(),
        page.after_id(),
        page.offset(),
        page.fetched(),
    )
    .fetch_all(models)
    .await
}
