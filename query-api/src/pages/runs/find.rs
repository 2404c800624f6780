//! Runs of all workflows together, found in the index that each workflow and state has.

use chrono::{DateTime, Utc};
use schemas::OrgId;
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use sqlx::types::Json;

use super::filter::Filter;
use crate::paging::{Listed, Page};

/// Lists, one for a workflow's runs in one state, that are looked into at most.
const LISTS: i64 = 3_000;
/// Payloads that one search reads at most.
pub(super) const SEARCHED: i64 = 1_000;

#[derive(Debug, Serialize)]
pub(in crate::pages) struct Found {
    pub(super) id: String,
    workflow_id: String,
    workflow: String,
    state: String,
    error: Option<String>,
    origin: Json<Origin>,
    created_at: DateTime<Utc>,
    seconds: Option<f64>,
    /// Whether it has the text that is looked for.
    #[serde(skip)]
    pub(super) matches: bool,
}

/// What of a trigger's payload is shown. Postgres' own functions for JSON would refuse the whole
/// payload for one U+0000 anywhere in it, so that it is read here.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all(deserialize = "camelCase"))]
struct Origin {
    triggered_by: Option<String>,
}

impl Listed for Found {
    fn created_at(&self) -> DateTime<Utc> {
        self.created_at
    }

    fn id(&self) -> &str {
        &self.id
    }
}

/// The newest runs of an organization.
pub(in crate::pages) async fn find_newest(
    org: &OrgId,
    models: &PgPool,
) -> Result<Vec<Found>, sqlx::Error> {
    let search = Search {
        rows: 10,
        ..Search::default()
    };
    find(org, &Filter::default(), search, models).await
}

/// Where a search begins, and how many rows it takes.
#[derive(Default)]
pub(super) struct Search<'a> {
    pub(super) after: Option<DateTime<Utc>>,
    pub(super) after_id: &'a str,
    pub(super) offset: i64,
    pub(super) rows: i64,
}

impl<'a> Search<'a> {
    pub(super) fn page(page: &'a Page) -> Self {
        Self {
            after: page.after_time(),
            after_id: page.after_id(),
            offset: page.offset(),
            rows: page.fetched(),
        }
    }
}

/// The counters say which workflows have runs in which state; the newest of each of these lists
/// are found in its index, and the newest of all of them are read.
pub(super) async fn find(
    org: &OrgId,
    filter: &Filter,
    search: Search<'_>,
    models: &PgPool,
) -> Result<Vec<Found>, sqlx::Error> {
    sqlx::query_as!(
        Found,
        r#"WITH list AS MATERIALIZED (
               SELECT parent, state FROM totals
               WHERE org_id = $1 AND kind = 'runs' AND count > 0
                 AND ($2::text IS NULL OR parent = $2) AND ($3::text IS NULL OR state = $3)
               ORDER BY parent, state LIMIT $10
           ), place AS MATERIALIZED (
               SELECT found.run_id, found.created_at
               FROM list CROSS JOIN LATERAL (
                   SELECT run_id, created_at FROM runs
                   WHERE org_id = $1 AND workflow_id = list.parent AND state = list.state
                     AND created_at >= coalesce($4::timestamptz, '-infinity')
                     AND created_at < coalesce($5::timestamptz, 'infinity')
                     AND created_at <= coalesce($6::timestamptz, 'infinity')
                     AND (created_at < coalesce($6::timestamptz, 'infinity') OR run_id > $7)
                   ORDER BY created_at DESC, run_id LIMIT $8::bigint + $9::bigint
               ) AS found
               ORDER BY found.created_at DESC, found.run_id OFFSET $8 LIMIT $9
           )
           SELECT run.run_id AS id, run.workflow_id,
                  coalesce(workflow.name, run.workflow_id) AS "workflow!", run.state,
                  left(run.error, 300) AS error, run.trigger_payload AS "origin: _",
                  run.created_at,
                  extract(epoch FROM run.ended_at - run.created_at)::float8 AS seconds,
                  ($11::text IS NULL
                   OR strpos(lower(run.trigger_payload::text), $11) > 0) AS "matches!"
           FROM place
           CROSS JOIN LATERAL
                (SELECT * FROM runs WHERE org_id = $1 AND run_id = place.run_id LIMIT 1) AS run
           LEFT JOIN workflows AS workflow
                  ON workflow.org_id = $1 AND workflow.workflow_id = run.workflow_id
           ORDER BY run.created_at DESC, run.run_id"#,
        org.as_str(),
        filter.workflow,
        filter.state,
        filter.from,
        filter.to,
        search.after,
        search.after_id,
        search.offset,
        search.rows,
        LISTS,
        filter.needle(),
    )
    .fetch_all(models)
    .await
}

/// The run of this id, where there is one.
pub(super) async fn find_by_id(
    org: &OrgId,
    id: &str,
    models: &PgPool,
) -> Result<Option<Found>, sqlx::Error> {
    sqlx::query_as!(
        Found,
        r#"SELECT run.run_id AS id, run.workflow_id,
                  coalesce(workflow.name, run.workflow_id) AS "workflow!", run.state,
                  left(run.error, 300) AS error, run.trigger_payload AS "origin: _",
                  run.created_at,
                  extract(epoch FROM run.ended_at - run.created_at)::float8 AS seconds,
                  true AS "matches!"
           FROM runs AS run
           LEFT JOIN workflows AS workflow
                  ON workflow.org_id = $1 AND workflow.workflow_id = run.workflow_id
           WHERE run.org_id = $1 AND run.run_id = $2"#,
        org.as_str(),
        id,
    )
    .fetch_optional(models)
    .await
}

/// The newest runs of a workflow.
pub(in crate::pages) async fn find_newest_of(
    org: &OrgId,
    workflow: &str,
    models: &PgPool,
) -> Result<Vec<Found>, sqlx::Error> {
    let filter = Filter {
        workflow: Some(workflow.to_owned()),
        ..Filter::default()
    };
    let search = Search {
        rows: 10,
        ..Search::default()
    };
    find(org, &filter, search, models).await
}
