//! `GET /api/v1/workflows`

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
struct Workflow {
    #[serde(rename = "workflowId")]
    id: String,
    name: String,
    status: String,
    version: i64,
    updated_at: DateTime<Utc>,
    #[serde(skip)]
    created_at: DateTime<Utc>,
    /// The beginning of its name, if the list is ordered by it.
    #[serde(skip)]
    name_key: Option<String>,
}

impl Listed for Workflow {
    fn created_at(&self) -> DateTime<Utc> {
        self.created_at
    }

    fn id(&self) -> &str {
        &self.id
    }

    fn sort_key(&self) -> SortKey {
        SortKey::of(self.name_key.as_deref(), self.created_at)
    }
}

pub(super) async fn list_workflows(
    reading: Reading<scope::ReadWorkflows>,
    uri: Uri,
) -> Result<Response, HttpError> {
    let query = ShortQuery::from_parameters(&Parameters::of(&uri)?, BY_TIME_AND_NAME)?;
    let models = reading.models(&[Projection::Workflows]).await?;
    let total = count_workflows(reading.org(), &query, models).await?;
    let workflows = find_workflows(reading.org(), &query, models).await?;
    Ok(query.page.answer(&uri, workflows, total))
}

/// Returns the number of workflows with the query's text in their name or id.
async fn count_workflows(
    org: &OrgId,
    query: &ShortQuery,
    models: &PgPool,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT count(*) AS "total!" FROM workflows
           WHERE org_id = $1 AND ($2::text IS NULL OR name || E'\n' || workflow_id ILIKE $2)"#,
        org.as_str(),
        query.pattern(),
    )
    .fetch_one(models)
    .await
}

/// Returns a page of those workflows.
async fn find_workflows(
    org: &OrgId,
    query: &ShortQuery,
    models: &PgPool,
) -> Result<Vec<Workflow>, sqlx::Error> {
    find_short_page!(
        Workflow:
        r#"id AS "id!", name AS "name!", status AS "status!", version AS "version!",
           updated_at AS "updated_at!", created_at AS "created_at!", name_key"#
        from r"SELECT workflow_id AS id, name, status, version, updated_at, created_at
               FROM workflows
               WHERE org_id = $1
                 AND ($2::text IS NULL OR name || E'\n' || workflow_id ILIKE $2)",
        (org.as_str(), query), models
    )
}
