//! `GET /api/v1/keys`

use access::scope;
use axum::http::Uri;
use axum::response::Response;
use chrono::{DateTime, Utc};
use schemas::OrgId;
use serde::Serialize;
use service::HttpError;
use sqlx::PgPool;

use crate::paging::{BY_TIME_AND_NAME, Listed, Parameters, SortKey};
use crate::progress::Projection;
use crate::reading::Reading;
use crate::search::{ShortQuery, find_short_page};

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
    /// The beginning of its name, if the list is ordered by it.
    #[serde(skip)]
    name_key: Option<String>,
}

impl Listed for ApiKey {
    fn created_at(&self) -> DateTime<Utc> {
        self.created_at
    }

    fn id(&self) -> &str {
        &self.key_id
    }

    fn sort_key(&self) -> SortKey {
        SortKey::of(self.name_key.as_deref(), self.created_at)
    }
}

pub(super) async fn list_keys(
    reading: Reading<scope::ManageKeys>,
    uri: Uri,
) -> Result<Response, HttpError> {
    let query = ShortQuery::from_parameters(&Parameters::of(&uri)?, BY_TIME_AND_NAME)?;
    let models = reading.models(&[Projection::ApiKeys]).await?;
    let total = count_keys(reading.org(), &query, models).await?;
    let keys = find_keys(reading.org(), &query, models).await?;
    Ok(query.page.answer(&uri, keys, total))
}

/// Returns the number of keys with the query's text in their name or id.
pub(crate) async fn count_keys(
    org: &OrgId,
    query: &ShortQuery,
    models: &PgPool,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT count(*) AS "total!" FROM api_keys
           WHERE org_id = $1 AND ($2::text IS NULL OR name || E'\n' || key_id ILIKE $2)"#,
        org.as_str(),
        query.pattern(),
    )
    .fetch_one(models)
    .await
}

/// Returns a page of those keys. The checks of a busy key are counted under a second slightly in
/// the future.
pub(crate) async fn find_keys(
    org: &OrgId,
    query: &ShortQuery,
    models: &PgPool,
) -> Result<Vec<ApiKey>, sqlx::Error> {
    find_short_page!(
        ApiKey:
        r#"id AS "key_id!", name AS "name!", scopes AS "scopes!", rate_limit AS "rate_limit!",
           expires_at AS "expires_at?", created_at AS "created_at!", created_by AS "created_by!",
           to_timestamp((
               SELECT max(least(use.second, floor(extract(epoch FROM now()))::bigint)) FROM (
                   SELECT counter, second FROM limit_windows
                   UNION ALL SELECT counter, second FROM limit_uses
               ) AS use
               WHERE use.counter IN ('hourly/' || page.id, 'minute/' || page.id)
           )) AS last_used_at, name_key"#
        from r"SELECT key_id AS id, name, scopes, rate_limit, expires_at, created_at, created_by
               FROM api_keys
               WHERE org_id = $1 AND ($2::text IS NULL OR name || E'\n' || key_id ILIKE $2)",
        (org.as_str(), query), models
    )
}
