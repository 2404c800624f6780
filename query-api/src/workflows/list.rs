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
    let page = Page::asked_for(&Parameters::of(&uri)?)?;
    let models = reading.models(&[Projection::Workflows]).await?;
    let total = count_workflows(reading.org(), models).await?;
    let workflows = find_workflows(reading.org(), &page, models).await?;
    Ok(page.answer(&uri, workflows, total))
}

async fn count_workflows(org: &OrgId, models: &PgPool) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT count(*) AS "total!" FROM workflows WHERE org_id = $1"#,
        org.as_str(),
    )
    .fetch_one(models)
    .await
}

async fn find_workflows(
    org: &OrgId,
    page: &Page,
    models: &PgPool,
) -> Result<Vec<Workflow>, sqlx::Error> {
    sqlx::query_as!(
        Workflow,
        "SELECT workflow_id AS id, name, status, version, updated_at, created_at
         FROM workflows
         WHERE org_id = $1 AND created_at <= coalesce($2::timestamptz, 'infinity')
           AND (created_at < coalesce($2::timestamptz, 'infinity') OR workflow_id > $3)
         ORDER BY created_at DESC, workflow_id OFFSET $4 LIMIT $5",
        org.as_str(),
        page.after_time(),
        page.after_id(),
        page.offset(),
        page.fetched(),
    )
    .fetch_all(models)
    .await
}
