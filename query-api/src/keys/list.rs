//! `GET /api/v1/keys`

use access::scope;
use axum::http::Uri;
use axum::response::Response;
use chrono::{DateTime, Utc};
use schemas::OrgId;
use serde::Serialize;
use service::HttpError;
use sqlx::PgPool;

use crate::paging::{Listed, Page, Parameters};
use crate::progress::Projection;
use crate::reading::Reading;
use crate::search::{anywhere, search_text};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApiKey {
    key_id: String,
    name: String,
    scopes: Vec<String>,
    rate_limit: i64,
    expires_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
    last_used_at: Option<DateTime<Utc>>,
    created_by: String,
}

impl Listed for ApiKey {
    fn created_at(&self) -> DateTime<Utc> {
        self.created_at
    }

    fn id(&self) -> &str {
        &self.key_id
    }
}

pub(super) async fn list_keys(
    reading: Reading<scope::ManageKeys>,
    uri: Uri,
) -> Result<Response, HttpError> {
    let parameters = Parameters::of(&uri)?;
    let page = Page::from_parameters(&parameters)?;
    let text = search_text(&parameters)?;
    let models = reading.models(&[Projection::ApiKeys]).await?;
    let total = count_keys(reading.org(), text.as_deref(), models).await?;
    let keys = find_keys(reading.org(), text.as_deref(), &page, models).await?;
    Ok(page.answer(&uri, keys, total))
}

/// Returns the number of keys with a text in their name or id.
pub(crate) async fn count_keys(
    org: &OrgId,
    text: Option<&str>,
    models: &PgPool,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT count(*) AS "total!" FROM api_keys
           WHERE org_id = $1 AND ($2::text IS NULL OR name || E'\n' || key_id ILIKE $2)"#,
        org.as_str(),
        text.map(anywhere),
    )
    .fetch_one(models)
    .await
}

/// Returns those keys, newest first. An organization has few keys, so no index is needed.
pub(crate) async fn find_keys(
    org: &OrgId,
    text: Option<&str>,
    page: &Page,
    models: &PgPool,
) -> Result<Vec<ApiKey>, sqlx::Error> {
    // The checks of a busy key are counted under a second slightly in the future.
    sqlx::query_as!(
        ApiKey,
        r#"SELECT key_id, name, scopes, rate_limit, expires_at, created_at, created_by,
                  to_timestamp((
                      SELECT max(least(use.second, floor(extract(epoch FROM now()))::bigint)) FROM (
                          SELECT counter, second FROM limit_windows
                          UNION ALL SELECT counter, second FROM limit_uses
                      ) AS use
                      WHERE use.counter IN ('hourly/' || key_id, 'minute/' || key_id)
                  )) AS last_used_at
           FROM api_keys
           WHERE org_id = $1 AND created_at <= coalesce($2::timestamptz, 'infinity')
             AND (created_at < coalesce($2::timestamptz, 'infinity') OR key_id > $3)
             AND ($6::text IS NULL OR name || E'\n' || key_id ILIKE $6)
           ORDER BY created_at DESC, key_id OFFSET $4 LIMIT $5"#,
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
