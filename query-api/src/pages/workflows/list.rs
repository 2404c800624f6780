//! `GET /dashboard/workflows`

use axum::extract::State as AppState;
use axum::http::Uri;
use axum::response::Response;
use chrono::{DateTime, TimeDelta, Utc};
use minijinja::context;
use schemas::OrgId;
use serde::Serialize;
use sqlx::PgPool;

use crate::pages::frame::{piece, shown};
use crate::pages::visit::{Instead, Visit};
use crate::paging::{Listed, Page, Parameters};
use crate::progress::Projection;
use crate::state::State;

/// Maximum number of runs counted per workflow.
const COUNTED: i64 = 1_000;

#[derive(Serialize)]
struct Workflow {
    id: String,
    name: String,
    status: String,
    version: i64,
    can_run: bool,
    created_at: DateTime<Utc>,
    last_run: Option<DateTime<Utc>>,
    runs: i64,
    failed: i64,
}

impl Listed for Workflow {
    fn created_at(&self) -> DateTime<Utc> {
        self.created_at
    }

    fn id(&self) -> &str {
        &self.id
    }
}

pub(in crate::pages) async fn list_workflows(
    visit: Visit,
    uri: Uri,
    AppState(state): AppState<State>,
) -> Result<Response, Instead> {
    let page = Page::from_parameters(&Parameters::of(&uri)?)?;
    let read_from = [Projection::Workflows, Projection::Runs];
    let models = visit.models(&read_from).await?;
    let since = state.clock.now() - TimeDelta::days(1);
    let mut workflows = find_workflows(visit.org(), &page, since, models).await?;
    let next = page.next_link(&uri, &mut workflows);
    let frame = visit
        .page("workflows.html", "Workflows", "workflows")
        .await?;
    let frame = frame.with_script("workflows.js").with_style("flow.css");
    Ok(frame.show(context! {
        workflows => shown(&workflows),
        next => next,
        run_form => piece("run_form.html", context! {})?,
        most => COUNTED,
    })?)
}

async fn find_workflows(
    org: &OrgId,
    page: &Page,
    since: DateTime<Utc>,
    models: &PgPool,
) -> Result<Vec<Workflow>, sqlx::Error> {
    sqlx::query_as!(
        Workflow,
        r#"SELECT listed.workflow_id AS id, listed.name, listed.status, listed.version,
                  listed.created_at, listed.status = 'ACTIVE' AND listed.has_trigger AS "can_run!",
                  (SELECT created_at FROM runs
                   WHERE org_id = $1 AND workflow_id = listed.workflow_id
                   ORDER BY created_at DESC, run_id LIMIT 1) AS last_run,
                  (SELECT count(*) FROM (
                       SELECT FROM runs
                       WHERE org_id = $1 AND workflow_id = listed.workflow_id AND created_at >= $6
                       ORDER BY created_at DESC, run_id LIMIT $7) AS begun) AS "runs!",
                  (SELECT count(*) FROM (
                       SELECT FROM runs
                       WHERE org_id = $1 AND workflow_id = listed.workflow_id
                         AND state = 'FAILED' AND created_at >= $6
                       ORDER BY created_at DESC, run_id LIMIT $7) AS begun) AS "failed!"
           FROM (SELECT * FROM workflows
                 WHERE org_id = $1 AND created_at <= coalesce($2::timestamptz, 'infinity')
                   AND (created_at < coalesce($2::timestamptz, 'infinity') OR workflow_id > $3)
                 ORDER BY created_at DESC, workflow_id OFFSET $4 LIMIT $5) AS listed
           ORDER BY listed.created_at DESC, listed.workflow_id"#,
        org.as_str(),
        page.after_time(),
        page.after_id(),
        page.offset(),
        page.fetched(),
        since,
        COUNTED,
    )
    .fetch_all(models)
    .await
}
