//! `GET /dashboard`: what goes on; `GET /dashboard/sign-in`.

use axum::extract::State as AppState;
use axum::http::Uri;
use axum::response::Response;
use chrono::{DateTime, Utc};
use minijinja::context;
use schemas::{Log, OrgId};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use sqlx::types::Json;

use super::frame::{Page, shown};
use super::visit::{Instead, Visit};
use crate::paging::Parameters;
use crate::progress::Projection;
use crate::state::State;

pub(super) async fn show_sign_in(uri: Uri) -> Result<Response, Instead> {
    let next = Parameters::of(&uri)?;
    // Only to pages of the dashboard: an address from elsewhere could lead anywhere.
    let next = next.one("next")?.filter(|next| {
        let path = next.strip_prefix("/dashboard");
        path.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    let page = Page::open("sign_in.html", "Sign in").with_script("dashboard.js");
    Ok(page.show(context! { next => next.unwrap_or("/dashboard") })?)
}

#[derive(Serialize)]
struct Workflow {
    id: String,
    name: String,
    status: String,
    version: i64,
    updated_at: DateTime<Utc>,
    can_run: bool,
}

#[derive(Serialize)]
struct RecentRun {
    id: String,
    workflow_id: String,
    workflow: String,
    state: String,
    origin: Json<Origin>,
    created_at: DateTime<Utc>,
    seconds: Option<f64>,
}

/// What of a trigger's payload is shown. Postgres' own functions for JSON would refuse the whole
/// payload for one U+0000 anywhere in it, so that it is read here.
#[derive(Serialize, Deserialize)]
#[serde(rename_all(deserialize = "camelCase"))]
struct Origin {
    triggered_by: Option<String>,
}

/// How far what is read is behind one of the logs.
#[derive(Serialize)]
struct Standing {
    log: &'static str,
    behind: Option<u64>,
}

pub(super) async fn show_overview(
    visit: Visit,
    AppState(state): AppState<State>,
) -> Result<Response, Instead> {
    let models = visit
        .models(&[Projection::Workflows, Projection::Runs])
        .await?;
    let workflows = find_workflows(visit.org(), models).await?;
    let runs = find_runs(visit.org(), models).await?;
    let mut standings = Vec::new();
    for (log, name) in [
        (Log::Events, "Events"),
        (Log::Locations, "Positions"),
        (Log::Deliveries, "Webhook deliveries"),
    ] {
        let end = state.log.end(log).await.ok();
        let behind = end.and_then(|end| state.progress.behind(end));
        standings.push(Standing { log: name, behind });
    }
    let page = visit.page("dashboard.html", "Home", "home").await?;
    Ok(page.show(context! {
        workflows => shown(&workflows),
        runs => shown(&runs),
        standings => shown(&standings),
    })?)
}

async fn find_workflows(org: &OrgId, models: &PgPool) -> Result<Vec<Workflow>, sqlx::Error> {
    sqlx::query_as!(
        Workflow,
        r#"SELECT workflow_id AS id, name, status, version, updated_at,
                  status = 'ACTIVE' AND has_trigger AS "can_run!"
           FROM workflows WHERE org_id = $1
           ORDER BY created_at DESC, workflow_id LIMIT 100"#,
        org.as_str(),
    )
    .fetch_all(models)
    .await
}

/// Each workflow's newest runs are found in an index; the newest of these are shown.
async fn find_runs(org: &OrgId, models: &PgPool) -> Result<Vec<RecentRun>, sqlx::Error> {
    sqlx::query_as!(
        RecentRun,
        r#"SELECT run.run_id AS id, run.workflow_id, workflow.name AS workflow, run.state,
                  run.trigger_payload AS "origin: _", run.created_at,
                  extract(epoch FROM run.ended_at - run.created_at)::float8 AS seconds
           FROM (SELECT * FROM workflows WHERE org_id = $1
                 ORDER BY created_at DESC, workflow_id LIMIT 100) AS workflow
           CROSS JOIN LATERAL (
               SELECT * FROM runs
               WHERE org_id = $1 AND workflow_id = workflow.workflow_id
               ORDER BY created_at DESC, run_id LIMIT 15
           ) AS run
           ORDER BY run.created_at DESC, run.run_id LIMIT 15"#,
        org.as_str(),
    )
    .fetch_all(models)
    .await
}
