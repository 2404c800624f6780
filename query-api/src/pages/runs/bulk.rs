//! `GET /dashboard/runs/matching`: the runs that match a filter, for bulk actions: their number,
//! and then their ids in batches.

use axum::Json;
use axum::http::{HeaderName, Uri, header::CACHE_CONTROL};
use schemas::OrgId;
use serde::Serialize;
use service::HttpError;
use sqlx::PgPool;

use super::filter::Filter;
use super::find::{LISTS, RunCursor, Search, find_places};
use crate::pages::COUNTED;
use crate::pages::visit::{Instead, Visit};
use crate::paging::{Page, Parameters};
use crate::progress::Projection;

/// The states that an action applies to if the filter names none.
const CANCELLABLE: &[&str] = &["QUEUED", "RUNNING", "WAITING"];
const RETRYABLE: &[&str] = &["FAILED"];

#[derive(Serialize)]
pub(in crate::pages) struct Matching {
    count: i64,
    /// Whether there are more than were counted.
    more: bool,
    runs: Vec<RunCursor>,
    next: Option<String>,
}

/// Returns the states of the runs that an action applies to.
pub(super) fn states_for(action: &str, filter: &Filter) -> Option<Vec<String>> {
    let cancelled = filter.state.as_deref() == Some("CANCELLED");
    match action {
        "cancel" => Some(filter.states(CANCELLABLE)),
        // Runs were cancelled on purpose, so they are only retried on explicit request.
        "retry" if cancelled => Some(filter.states(&["CANCELLED"])),
        "retry" => Some(filter.states(RETRYABLE)),
        _ => None,
    }
}

pub(in crate::pages) async fn list_matching(
    visit: Visit,
    uri: Uri,
) -> Result<([(HeaderName, &'static str); 1], Json<Matching>), Instead> {
    let parameters = Parameters::of(&uri)?;
    let filter = Filter::of(&uri)?;
    if filter.q.is_some() {
        let reason = "q: runs that were searched for are changed one by one; clear the search";
        return Err(HttpError::bad_request(reason).into());
    }
    let action = parameters.one("action")?.unwrap_or_default();
    let states = states_for(action, &filter)
        .ok_or_else(|| HttpError::bad_request("action: must be cancel or retry"))?;
    let page = Page::from_parameters(&parameters)?;
    let models = visit.models(&[Projection::Runs]).await?;
    let count = count(visit.org(), &filter, &states, models).await?;
    let search = Search::page(&page);
    let mut runs = find_places(visit.org(), &filter, Some(&states), search, models).await?;
    let next = page.next_link(&uri, &mut runs);
    let matching = Matching {
        count,
        more: count >= COUNTED,
        runs,
        next,
    };
    Ok(([(CACHE_CONTROL, "no-store")], Json(matching)))
}

/// Counts the matching runs in the index of each list.
async fn count(
    org: &OrgId,
    filter: &Filter,
    states: &[String],
    models: &PgPool,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM (
               SELECT 1 FROM (
                   SELECT parent, state FROM totals
                   WHERE org_id = $1 AND kind = 'runs' AND count > 0
                     AND ($2::text IS NULL OR parent = $2) AND state = ANY($3)
                   ORDER BY parent, state LIMIT $4) AS list
               CROSS JOIN LATERAL (
                   SELECT FROM runs
                   WHERE org_id = $1 AND workflow_id = list.parent AND state = list.state
                     AND created_at >= coalesce($5::timestamptz, '-infinity')
                     AND created_at < coalesce($6::timestamptz, 'infinity')
                   LIMIT $7) AS found
               LIMIT $7) AS counted"#,
        org.as_str(),
        filter.workflow,
        states as _,
        LISTS,
        filter.from,
        filter.to,
        COUNTED,
    )
    .fetch_one(models)
    .await
}
