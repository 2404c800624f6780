//! `GET /api/v1/workflows/{id}/runs`

use access::scope;
use axum::http::Uri;
use axum::response::Response;
use domain::run;
use schemas::OrgId;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as UnknownState;
use service::HttpError;
use sqlx::PgPool;

use super::get::no_workflow;
use crate::paging::{Page, Parameters, find_page};
use crate::progress::Projection;
use crate::reading::{Reading, ResourceId};
use crate::runs::Run;

pub(super) async fn list_runs(
    reading: Reading<scope::ReadWorkflows>,
    ResourceId(workflow): ResourceId,
    uri: Uri,
) -> Result<Response, HttpError> {
    let parameters = Parameters::of(&uri)?;
    let page = Page::asked_for(&parameters)?;
    let state = asked_state(&parameters)?;
    let read_from = [Projection::Workflows, Projection::Runs];
    let models = reading.models(&read_from).await?;
    let (org, list) = (reading.org(), RunList { workflow, state });
    let runs = list.find(org, &page, models).await?;
    let total = match runs.first() {
        Some(run) => run.total,
        None => list.count(org, models).await?.ok_or_else(no_workflow)?,
    };
    Ok(page.answer(&uri, runs, total))
}

/// The state that a request filters by, empty if none.
fn asked_state(parameters: &Parameters) -> Result<String, HttpError> {
    let Some(state) = parameters.one("state")? else {
        return Ok(String::new());
    };
    let known: Result<run::State, UnknownState> =
        run::State::deserialize(state.into_deserializer());
    match known {
        Ok(_) => Ok(state.to_owned()),
        Err(error) => Err(HttpError::bad_request(format!("state: {error}"))),
    }
}

/// A workflow's runs, all or those of one state.
struct RunList {
    workflow: String,
    /// Empty for all.
    state: String,
}

impl RunList {
    async fn find(
        &self,
        org: &OrgId,
        page: &Page,
        models: &PgPool,
    ) -> Result<Vec<Run>, sqlx::Error> {
        let list = (org.as_str(), self.workflow.as_str(), self.state.as_str());
        let (org, workflow, state) = list;
        // Two statements, so that each of them is planned for its own index.
        if state.is_empty() {
            find_page!(
                Run from "runs" by "run_id":
                r#"shown.run_id AS "id!", workflow_id AS "workflow_id!",
                   workflow_version AS "workflow_version!", state AS "state!",
                   trigger_payload AS "trigger_payload!: _", created_at AS "created_at!",
                   started_at, ended_at, error, steps AS "steps!: _""#
                within "workflow_id = $2", total "($3 = '' OR state = $3)",
                (org, workflow, state), page, models
            )
        } else {
            find_page!(
                Run from "runs" by "run_id":
                r#"shown.run_id AS "id!", workflow_id AS "workflow_id!",
                   workflow_version AS "workflow_version!", state AS "state!",
                   trigger_payload AS "trigger_payload!: _", created_at AS "created_at!",
                   started_at, ended_at, error, steps AS "steps!: _""#
                within "workflow_id = $2 AND state = $3", total "($3 = '' OR state = $3)",
                (org, workflow, state), page, models
            )
        }
    }

    /// Returns the number of runs in the list, if the workflow exists.
    async fn count(&self, org: &OrgId, models: &PgPool) -> Result<Option<i64>, sqlx::Error> {
        sqlx::query_scalar!(
            r#"SELECT (SELECT coalesce(sum(count), 0)::bigint FROM totals
                       WHERE org_id = $1 AND kind = 'runs' AND parent = $2
                         AND ($3 = '' OR state = $3)) AS "total!"
               FROM workflows WHERE org_id = $1 AND workflow_id = $2"#,
            org.as_str(),
            self.workflow,
            self.state,
        )
        .fetch_optional(models)
        .await
    }
}
