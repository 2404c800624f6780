//! Finds runs of all workflows together, in the index that each workflow and state has.

use chrono::{DateTime, Utc};
use schemas::OrgId;
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use sqlx::types::Json;

use super::filter::Filter;
use crate::paging::{Listed, Page};

/// Maximum number of searched lists, each of a workflow's runs in one state.
pub(super) const LISTS: i64 = 3_000;
/// Maximum number of payloads that one search reads.
pub(super) const SEARCHED: i64 = 1_000;
/// Runs shown beside other content.
const BESIDE: i64 = 10;

/// The position of a run among all.
#[derive(Debug, Serialize)]
pub(super) struct RunCursor {
    id: String,
    #[serde(skip)]
    created_at: DateTime<Utc>,
}

/// A run as shown in lists.
#[derive(Debug, Serialize)]
pub(in crate::pages) struct Found {
    id: String,
    workflow_id: String,
    workflow: String,
    state: String,
    error: Option<String>,
    origin: Json<Origin>,
    created_at: DateTime<Utc>,
    seconds: Option<f64>,
    /// Whether it contains the search text.
    #[serde(skip)]
    pub(super) matches: bool,
}

/// The displayed part of a trigger's payload. It is parsed here, since the JSON functions of
/// Postgres would reject the whole payload for one U+0000 anywhere in it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all(deserialize = "camelCase"))]
struct Origin {
    triggered_by: Option<String>,
}

impl Listed for RunCursor {
    fn created_at(&self) -> DateTime<Utc> {
        self.created_at
    }

    fn id(&self) -> &str {
        &self.id
    }
}

impl Listed for Found {
    fn created_at(&self) -> DateTime<Utc> {
        self.created_at
    }

    fn id(&self) -> &str {
        &self.id
    }
}

/// Returns the newest runs, of one workflow or of all.
pub(in crate::pages) async fn find_newest(
    org: &OrgId,
    workflow: Option<&str>,
    models: &PgPool,
) -> Result<Vec<Found>, sqlx::Error> {
    let filter = Filter {
        workflow: workflow.map(str::to_owned),
        ..Filter::default()
    };
    let search = Search {
        rows: BESIDE,
        ..Search::default()
    };
    find(org, &filter, search, models).await
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

/// Returns the runs that match the filter, newest first.
pub(super) async fn find(
    org: &OrgId,
    filter: &Filter,
    search: Search<'_>,
    models: &PgPool,
) -> Result<Vec<Found>, sqlx::Error> {
    let states = filter.state.clone().map(|state| vec![state]);
    let places = find_places(org, filter, states.as_deref(), search, models).await?;
    let ids: Vec<_> = places.iter().map(Listed::id).collect();
    read(org, &ids, filter.needle(), models).await
}

/// The counters show which workflows have runs in which state. The newest of each of these lists
/// are found in its index, without reading the runs themselves.
pub(super) async fn find_places(
    org: &OrgId,
    filter: &Filter,
    states: Option<&[String]>,
    search: Search<'_>,
    models: &PgPool,
) -> Result<Vec<RunCursor>, sqlx::Error> {
    sqlx::query_as!(
        RunCursor,
        r#"WITH list AS MATERIALIZED (
               SELECT parent, state FROM totals
               WHERE org_id = $1 AND kind = 'runs' AND count > 0
                 AND ($2::text IS NULL OR parent = $2)
                 AND ($3::text[] IS NULL OR state = ANY($3))
               ORDER BY parent, state LIMIT $10
           )
           SELECT found.run_id AS id, found.created_at
           FROM list CROSS JOIN LATERAL (
               SELECT run_id, created_at FROM runs
               WHERE org_id = $1 AND workflow_id = list.parent AND state = list.state
                 AND created_at >= coalesce($4::timestamptz, '-infinity')
                 AND created_at < coalesce($5::timestamptz, 'infinity')
                 AND created_at <= coalesce($6::timestamptz, 'infinity')
                 AND (created_at < coalesce($6::timestamptz, 'infinity') OR run_id > $7)
               ORDER BY created_at DESC, run_id LIMIT $8::bigint + $9::bigint
           ) AS found
           ORDER BY found.created_at DESC, found.run_id OFFSET $8 LIMIT $9"#,
        org.as_str(),
        filter.workflow,
        states as _,
        filter.from,
        filter.to,
        search.after,
        search.after_id,
        search.offset,
        search.rows,
        LISTS,
    )
    .fetch_all(models)
    .await
}

/// Reads these runs, newest first, each by its key.
pub(super) async fn read(
    org: &OrgId,
    ids: &[&str],
    needle: Option<String>,
    models: &PgPool,
) -> Result<Vec<Found>, sqlx::Error> {
    sqlx::query_as!(
        Found,
        r#"SELECT run.run_id AS id, run.workflow_id,
                  coalesce(workflow.name, run.workflow_id) AS "workflow!", run.state,
                  left(run.error, 300) AS error, run.trigger_payload AS "origin: _",
                  run.created_at,
                  extract(epoch FROM run.ended_at - run.created_at)::float8 AS seconds,
                  ($3::text IS NULL
                   OR strpos(lower(run.trigger_payload::text), $3) > 0) AS "matches!"
           FROM unnest($2::text[]) AS wanted (run_id)
           CROSS JOIN LATERAL
                (SELECT * FROM runs WHERE org_id = $1 AND run_id = wanted.run_id LIMIT 1) AS run
           LEFT JOIN workflows AS workflow
                  ON workflow.org_id = $1 AND workflow.workflow_id = run.workflow_id
           ORDER BY run.created_at DESC, run.run_id"#,
        org.as_str(),
        ids as _,
        needle,
    )
    .fetch_all(models)
    .await
}
