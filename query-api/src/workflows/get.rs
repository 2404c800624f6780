//! `GET /api/v1/workflows/{id}`

use access::scope;
use axum::Json;
use axum::http::HeaderName;
use axum::http::header::ETAG;
use chrono::{DateTime, Utc};
use domain::Revision;
use schemas::OrgId;
use serde::Serialize;
use serde_json::value::RawValue;
use service::HttpError;
use sqlx::PgPool;

use crate::progress::Projection;
use crate::reading::{Reading, ResourceId};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Workflow {
    #[serde(rename = "workflowId")]
    id: String,
    name: String,
    status: String,
    version: i64,
    timeout_seconds: i64,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    steps: sqlx::types::Json<Box<RawValue>>,
}

impl Workflow {
    /// The version's tag. A client that saves the next version sends the tag that it has seen.
    pub(crate) fn etag(&self) -> String {
        Revision::of_workflow(self.version).etag()
    }
}

pub(super) async fn get_workflow(
    reading: Reading<scope::ReadWorkflows>,
    ResourceId(id): ResourceId,
) -> Result<([(HeaderName, String); 1], Json<Workflow>), HttpError> {
    let models = reading.models(&[Projection::Workflows]).await?;
    let workflow = find_workflow(reading.org(), &id, models).await?;
    let workflow = workflow.ok_or_else(no_workflow)?;
    Ok(([(ETAG, workflow.etag())], Json(workflow)))
}

/// Returns a 404 error, whether the workflow or its runs were requested.
pub(crate) fn no_workflow() -> HttpError {
    HttpError::not_found("workflow not found")
}

pub(crate) async fn find_workflow(
    org: &OrgId,
    id: &str,
    models: &PgPool,
) -> Result<Option<Workflow>, sqlx::Error> {
    sqlx::query_as!(
        Workflow,
        r#"SELECT workflow_id AS id, name, status, version, timeout_seconds, created_at, updated_at,
                  steps AS "steps: _"
           FROM workflows WHERE org_id = $1 AND workflow_id = $2"#,
        org.as_str(),
        id,
    )
    .fetch_optional(models)
    .await
}
