//! `GET /api/v1/runs/{runId}`

use access::scope;
use axum::Json;
use schemas::OrgId;
use service::HttpError;
use sqlx::PgPool;

use super::Run;
use crate::progress::Projection;
use crate::reading::{Reading, ResourceId};

pub(super) async fn get_run(
    reading: Reading<scope::ReadWorkflows>,
    ResourceId(run_id): ResourceId,
) -> Result<Json<Run>, HttpError> {
    let models = reading.models(&[Projection::Runs]).await?;
    let run = find_run(reading.org(), &run_id, models).await?;
    run.map(Json).ok_or_else(no_run)
}

/// Returns a 404 error.
pub(crate) fn no_run() -> HttpError {
    HttpError::not_found("run not found")
}

pub(crate) async fn find_run(
    org: &OrgId,
    run_id: &str,
    models: &PgPool,
) -> Result<Option<Run>, sqlx::Error> {
    sqlx::query_as!(
        Run,
        r#"SELECT run_id AS id, workflow_id, workflow_version, state,
                  trigger_payload AS "trigger_payload: _", created_at, started_at, ended_at,
                  error, steps AS "steps: _", 1::bigint AS "total!"
           FROM runs WHERE org_id = $1 AND run_id = $2"#,
        org.as_str(),
        run_id,
    )
    .fetch_optional(models)
    .await
}
