//! `GET /api/v1/workflows/{id}/runs`

use access::scope;
use axum::http::Uri;
use axum::response::Response;
use chrono::{DateTime, Utc};
use domain::run;
use futures::future::BoxFuture;
use futures::{Stream, TryStreamExt as _};
use schemas::OrgId;
use serde::de::IntoDeserializer;
use serde::de::value::Error as UnknownState;
use serde::{Deserialize, Serialize};
use service::HttpError;
use sqlx::PgPool;

use super::get::no_workflow;
use crate::paging::{Listed, Page, Parameters, find_page};
use crate::progress::Projection;
use crate::reading::{Reading, ResourceId};
use crate::runs::{Run, find_run};

/// The payloads and steps of a page that are held in memory at once. Those of a page that has more
/// are read run by run.
const HELD_BYTES: usize = 4 * 1024 * 1024;

/// The place of a run in the list.
#[derive(Debug, Serialize)]
struct RunPlace {
    id: String,
    created_at: DateTime<Utc>,
    /// The number of runs in the list.
    #[serde(skip)]
    total: i64,
}

impl Listed for RunPlace {
    fn created_at(&self) -> DateTime<Utc> {
        self.created_at
    }

    fn id(&self) -> &str {
        &self.id
    }
}

pub(super) async fn list_runs(
    reading: Reading<scope::ReadWorkflows>,
    ResourceId(workflow): ResourceId,
    uri: Uri,
) -> Result<Response, HttpError> {
    let parameters = Parameters::of(&uri)?;
    let page = Page::from_parameters(&parameters)?;
    let state = asked_state(&parameters)?;
    let read_from = [Projection::Workflows, Projection::Runs];
    let models = reading.models(&read_from).await?;
    let (org, list) = (reading.org(), RunList { workflow, state });
    let Some(runs) = list.find(org, &page, models).await? else {
        let places = list.find_places(org, &page, models).await?;
        let total = places.first().map_or(0, |place| place.total);
        let read = one_by_one(org.clone(), models.clone());
        return Ok(page.answer_one_by_one(&uri, places, total, read));
    };
    let total = match runs.first() {
        Some(run) => run.total,
        None => list.count(org, models).await?.ok_or_else(no_workflow)?,
    };
    Ok(page.answer(&uri, runs, total))
}

/// Returns a function that reads a run, as it is by then.
fn one_by_one(
    org: OrgId,
    models: PgPool,
) -> impl Fn(RunPlace) -> BoxFuture<'static, Result<Option<Vec<u8>>, HttpError>> {
    move |place: RunPlace| {
        let (org, models) = (org.clone(), models.clone());
        Box::pin(async move {
            let run = find_run(&org, &place.id, &models).await?;
            let run = run.map(|run| serde_json::to_vec(&run));
            run.transpose().map_err(HttpError::internal)
        })
    }
}

/// Collects runs; `None` if they have too much to be held together.
async fn held_together(
    mut runs: impl Stream<Item = Result<Run, sqlx::Error>> + Unpin,
) -> Result<Option<Vec<Run>>, sqlx::Error> {
    let (mut held, mut bytes) = (Vec::new(), 0);
    while let Some(run) = runs.try_next().await? {
        bytes += run.trigger_payload.get().len() + run.steps.get().len();
        if bytes > HELD_BYTES {
            return Ok(None);
        }
        held.push(run);
    }
    Ok(Some(held))
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

/// Selects a page of a list of runs. There is a statement for each kind of list, so that each is
/// planned for its own index.
macro_rules! select_runs {
    ($row:ident: $columns:literal, ($list:expr, $org:expr, $page:expr, $models:expr)
     $(, by $read:path)?) => {{
        let list = ($org.as_str(), $list.workflow.as_str(), $list.state.as_str());
        let (org, workflow, state) = list;
        if state.is_empty() {
            find_page!(
                $row from "runs" by "run_id": $columns
                within "workflow_id = $2", total "($3 = '' OR state = $3)",
                (org, workflow, state), $page, $models $(, by $read)?
            )
        } else {
            find_page!(
                $row from "runs" by "run_id": $columns
                within "workflow_id = $2 AND state = $3", total "($3 = '' OR state = $3)",
                (org, workflow, state), $page, $models $(, by $read)?
            )
        }
    }};
}

impl RunList {
    /// Returns the runs of a page; `None` if they have too much to be held together.
    async fn find(
        &self,
        org: &OrgId,
        page: &Page,
        models: &PgPool,
    ) -> Result<Option<Vec<Run>>, sqlx::Error> {
        let mut connection = models.acquire().await?;
        let runs = select_runs!(
            Run:
            r#"shown.run_id AS "id!", workflow_id AS "workflow_id!",
                   workflow_version AS "workflow_version!", state AS "state!",
                   trigger_payload AS "trigger_payload!: _", created_at AS "created_at!",
                   started_at, ended_at, error, steps AS "steps!: _""#,
            (self, org, page, &mut *connection), by held_together
        )?;
        if runs.is_none() {
            // The next user would first have to read the rest.
            connection.close_on_drop();
        }
        Ok(runs)
    }

    /// Returns the places of the runs of a page.
    async fn find_places(
        &self,
        org: &OrgId,
        page: &Page,
        models: &PgPool,
    ) -> Result<Vec<RunPlace>, sqlx::Error> {
        select_runs!(
            RunPlace: r#"shown.run_id AS "id!", created_at AS "created_at!""#,
            (self, org, page, models)
        )
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
