//! The steps of each version of a workflow, as needed for a drawing.

use schemas::OrgId;
use sqlx::PgPool;

/// Returns the outline of a version, as JSON text; `None` if there is no such version.
pub(crate) async fn find_outline(
    org: &OrgId,
    workflow: &str,
    version: i64,
    models: &PgPool,
) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT steps::text AS "steps!" FROM workflow_outlines
           WHERE org_id = $1 AND workflow_id = $2 AND version = $3"#,
        org.as_str(),
        workflow,
        version,
    )
    .fetch_optional(models)
    .await
}
