//! `GET /api/v1/workflows`

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
struct Workflow {
    #[serde(rename = "workflowId")]
    id: String,
    name: String,
    status: String,
    version: i64,
    updated_at: DateTime<Utc>,
    #[serde(skip)]
    created_at: DateTime<Utc>,
}

impl Listed for Workflow {
    fn created_at(&self) -> DateTime<Utc> {
        self.created_at
    }

    fn id(&self) -> &str {
        &self.id
    }
}

pub(super) async fn list_workflows(
    reading: Reading<scope::ReadWorkflows>,
    uri: Uri,
) -> Result<Response, HttpError> {
    let parameters = Parameters::of(&uri)?;
    let page = Page::from_parameters(&parameters)?;
    let text = search_text(&parameters)?;
    let models = reading.models(&[Projection::Workflows]).await?;
    let total = count_workflows(reading.org(), text.as_deref(), models).await?;
    let workflows = find_workflows(reading.org(), text.as_deref(), &page, models).await?;
    Ok(page.answer(&uri, workflows, total))
}

/// Returns the number of workflows with a text in their name or id.
async fn count_workflows(
    org: &OrgId,
    text: Option<&str>,
    models: &PgPool,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT count(*) AS "total!" FROM workflows
           WHERE org_id = $1 AND ($2::text IS NULL OR name || E'\n' || workflow_id ILIKE $2)"#,
        org.as_str(),
        text.map(anywhere),
    )
    .fetch_one(models)
    .await
}

/// Returns those workflows, newest first. An organization has few, so no index is needed.
async fn find_workflows(
    org: &OrgId,
    text: Option<&str>,
    page: &Page,
    models: &PgPool,
) -> Result<Vec<Workflow>, sqlx::Error> {
    sqlx::query_as!(
        Workflow,
        r"SELECT workflow_id AS id, name, status, version, updated_at, created_at
         FROM workflows
         WHERE org_id = $1 AND created_at <= coalesce($2::timestamptz, 'infinity')
           AND (created_at < coalesce($2::timestamptz, 'infinity') OR workflow_id > $3)
           AND ($6::text IS NULL OR name || E'\n' || workflow_id ILIKE $6)
         ORDER BY created_at DESC, workflow_id OFFSET $4 LIMIT $5",
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
