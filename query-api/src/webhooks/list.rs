//! `GET /api/v1/webhooks`

use access::scope;
use axum::http::Uri;
use axum::response::Response;
use schemas::OrgId;
use service::HttpError;
use sqlx::PgPool;

use super::Webhook;
use crate::paging::{BY_TIME, Parameters};
use crate::progress::Projection;
use crate::reading::Reading;
use crate::search::{ShortQuery, find_short_page};

pub(super) async fn list_webhooks(
    reading: Reading<scope::ManageWebhooks>,
    uri: Uri,
) -> Result<Response, HttpError> {
    let query = ShortQuery::from_parameters(&Parameters::of(&uri)?, BY_TIME)?;
    let models = reading.models(&[Projection::Webhooks]).await?;
    let total = count_webhooks(reading.org(), &query, models).await?;
    let webhooks = find_webhooks(reading.org(), &query, models).await?;
    Ok(query.page.answer(&uri, webhooks, total))
}

async fn count_webhooks(
    org: &OrgId,
    query: &ShortQuery,
    models: &PgPool,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT count(*) AS "total!" FROM webhooks
           WHERE org_id = $1 AND ($2::text IS NULL
               OR url || E'\n' || webhook_id || E'\n' || coalesce(description, '') ILIKE $2)"#,
        org.as_str(),
        query.pattern(),
    )
    .fetch_one(models)
    .await
}

/// Returns a page of the endpoints with the query's text in their address, description or id.
pub(crate) async fn find_webhooks(
    org: &OrgId,
    query: &ShortQuery,
    models: &PgPool,
) -> Result<Vec<Webhook>, sqlx::Error> {
    find_short_page!(
        Webhook:
        r#"id AS "id!", url AS "url!", events AS "events!", description AS "description?",
           status AS "status!", disabled_reason AS "disabled_reason?",
           created_at AS "created_at!", updated_at AS "updated_at!""#
        from r"SELECT webhook_id AS id, NULL::text AS name, url, events, description, status,
                      disabled_reason, created_at, updated_at
               FROM webhooks
               WHERE org_id = $1 AND ($2::text IS NULL
                   OR url || E'\n' || webhook_id || E'\n' || coalesce(description, '') ILIKE $2)",
        (org.as_str(), query), models
    )
}
