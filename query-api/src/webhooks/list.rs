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
use crate::search::{anywhere, search_text};

pub(super) async fn list_webhooks(
    reading: Reading<scope::ManageWebhooks>,
    uri: Uri,
) -> Result<Response, HttpError> {
    let parameters = Parameters::of(&uri)?;
    let page = Page::from_parameters(&parameters)?;
    let text = search_text(&parameters)?;
    let models = reading.models(&[Projection::Webhooks]).await?;
    let total = count_webhooks(reading.org(), text.as_deref(), models).await?;
    let webhooks = find_webhooks(reading.org(), text.as_deref(), &page, models).await?;
    Ok(page.answer(&uri, webhooks, total))
}

async fn count_webhooks(
    org: &OrgId,
    text: Option<&str>,
    models: &PgPool,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT count(*) AS "total!" FROM webhooks
           WHERE org_id = $1 AND ($2::text IS NULL
               OR url || E'\n' || webhook_id || E'\n' || coalesce(description, '') ILIKE $2)"#,
        org.as_str(),
        text.map(anywhere),
    )
    .fetch_one(models)
    .await
}

/// Returns the endpoints with a text in their address, description or id, newest first. An
/// organization has few endpoints, so no index is needed.
pub(crate) async fn find_webhooks(
    org: &OrgId,
    text: Option<&str>,
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
           AND ($6::text IS NULL
               OR url || E'\\n' || webhook_id || E'\\n' || coalesce(description, '') ILIKE $6)
         ORDER BY created_at DESC, webhook_id OFFSET $4 LIMIT $5",
        org.as_str(),
        page.after_time(),
        page.after_id(),
        page.offset(),
        page.fetched(),
        text.map(anywhere),
    )
    .fetch_all(models)
    .await
}
