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
use crate::paging::{Page, Parameters};
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

/// The state that a request filters by, where it does.
fn asked_state(parameters: &Parameters) -> Result<Option<String>, HttpError> {
    let Some(state) = parameters.one("state")? else {
        return Ok(None);
    };
    let known: Result<run::State, UnknownState> =
        run::State::deserialize(state.into_deserializer());
    match known {
        Ok(_) => Ok(Some(state.to_owned())),
        Err(error) => Err(HttpError::bad_request(format!("state: {error}"))),
    }
}

/// A workflow's runs, all or those of one state.
struct RunList {
    workflow: String,
    state: Option<String>,
}

/// Finds a page among the runs that meet a condition on `$3`, the state.
///
/// Places are found in an index alone, and from whichever end of the list is nearer: the total
/// is exact and of the same snapshot, so that the last page costs what the first does. Only the
/// runs that are shown are read themselves; `LIMIT 1` keeps the planner, which cannot know how few
/// they are, from reading them all.
macro_rules! find_page {
    ($condition:literal, $($argument:expr),+ $(,)?) => {
        sqlx::query_as!(
            Run,
            r#"WITH list AS MATERIALIZED (
                   SELECT coalesce(sum(count), 0)::bigint AS total FROM totals
                   WHERE org_id = $1 AND kind = 'runs' AND parent = $2
                     AND ($3::text IS NULL OR state = $3)
               ), place AS (
                   (SELECT run_id FROM runs
                    WHERE org_id = $1 AND workflow_id = $2 AND "# + $condition + r#"
                      AND created_at <= coalesce($4::timestamptz, 'infinity')
                      AND (created_at < coalesce($4::timestamptz, 'infinity') OR run_id > $5)
                      AND $6 <= (SELECT total / 2 FROM list)
                    ORDER BY created_at DESC, run_id OFFSET $6 LIMIT $7)
                   UNION ALL
                   (SELECT run_id FROM runs
                    WHERE org_id = $1 AND workflow_id = $2 AND "# + $condition + r#"
                      AND $6 > (SELECT total / 2 FROM list)
                    ORDER BY created_at, run_id DESC
                    OFFSET (SELECT greatest(total - $6 - $7, 0) FROM list)
                    LIMIT (SELECT greatest(least($7, total - $6), 0) FROM list))
               )
               SELECT run.run_id AS id, run.workflow_id, run.workflow_version, run.state,
                      run.trigger_payload AS "trigger_payload: _", run.created_at,
                      run.started_at, run.ended_at, run.error, run.steps AS "steps: _",
                      list.total AS "total!"
               FROM list, place, LATERAL
                    (SELECT * FROM runs WHERE org_id = $1 AND run_id = place.run_id LIMIT 1) AS run
               ORDER BY run.created_at DESC, run.run_id"#,
            $($argument),+
        )
    };
}

impl RunList {
    async fn find(
        &self,
        org: &OrgId,
        page: &Page,
        models: &PgPool,
    ) -> Result<Vec<Run>, sqlx::Error> {
        let org = org.as_str();
        let state = self.state.as_deref();
        let (time, id) = (page.after_time(), page.after_id());
        let (offset, count) = (page.offset(), page.fetched());
        if state.is_some() {
            find_page!(
                "state = $3",
                org,
                self.workflow,
                state,
                time,
                id,
                offset,
                count
            )
            .fetch_all(models)
            .await
        } else {
            find_page!(
                "$3::text IS NULL",
                org,
                self.workflow,
                state,
                time,
                id,
                offset,
                count
            )
            .fetch_all(models)
            .await
        }
    }

    /// How many runs the list has, where there is such a workflow.
    async fn count(&self, org: &OrgId, models: &PgPool) -> Result<Option<i64>, sqlx::Error> {
        sqlx::query_scalar!(
            r#"SELECT (SELECT coalesce(sum(count), 0)::bigint FROM totals
                       WHERE org_id = $1 AND kind = 'runs' AND parent = $2
                         AND ($3::text IS NULL OR state = $3)) AS "total!"
               FROM workflows WHERE org_id = $1 AND workflow_id = $2"#,
            org.as_str(),
            self.workflow,
            self.state,
        )
        .fetch_optional(models)
        .await
    }
}
