//! `GET /dashboard/runs`: the runs of all workflows, filtered and searched.

use axum::http::Uri;
use axum::response::Response;
use minijinja::{Value, context};
use schemas::OrgId;
use serde::Serialize;
use sqlx::PgPool;

use super::bulk::states_for;
use super::filter::{Filter, STATES};
use super::find::{Found, SEARCHED, Search, find, read};
use crate::pages::frame::{piece, shown};
use crate::pages::visit::{Instead, Visit};
use crate::paging::{Page, Parameters};
use crate::progress::Projection;

#[derive(Serialize)]
struct Choice {
    id: String,
    name: String,
}

pub(in crate::pages) async fn list_runs(visit: Visit, uri: Uri) -> Result<Response, Instead> {
    let filter = Filter::of(&uri)?;
    let page = Page::from_parameters(&Parameters::of(&uri)?)?;
    let read_from = [Projection::Workflows, Projection::Runs];
    let models = visit.models(&read_from).await?;
    // A search reads many payloads.
    let turn = match &filter.q {
        Some(_) => Some(visit.counts().turn(visit.org(), models).await?),
        None => None,
    };
    let (runs, next) = search(visit.org(), &filter, &page, &uri, models).await?;
    drop(turn);
    let workflows = find_choices(visit.org(), models).await?;
    let frame = visit.page("runs.html", "Runs", "runs").await?;
    let frame = frame.with_script("runs.js").with_style("flow.css");
    let offered = |action| {
        filter.q.is_none() && states_for(action, &filter).is_some_and(|states| !states.is_empty())
    };
    Ok(frame.show(context! {
        rows => piece("run_rows.html", context! { runs => shown(&runs) })?,
        runs => runs.len(),
        next => next,
        searched => filter.q.is_some().then_some(SEARCHED),
        can_cancel => offered("cancel"),
        can_retry => offered("retry"),
        is_filtered => filter.is_set(),
        filter => Value::from_iter(written(&filter)),
        states => STATES,
        workflows => shown(&workflows),
    })?)
}

/// Returns the filter as values of the form's fields.
fn written(filter: &Filter) -> [(&'static str, String); 5] {
    let minute = |time: Option<chrono::DateTime<chrono::Utc>>| {
        time.map(|time| time.format("%Y-%m-%dT%H:%M").to_string())
            .unwrap_or_default()
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    [
        ("workflow", text(&filter.workflow)),
        ("state", text(&filter.state)),
        ("from", minute(filter.from)),
        ("to", minute(filter.to)),
        ("q", text(&filter.q)),
    ]
}

/// Returns a page of runs, and the address of older ones. A search reads a limited number of
/// payloads. The next page continues after the last of them.
async fn search(
    org: &OrgId,
    filter: &Filter,
    page: &Page,
    uri: &Uri,
    models: &PgPool,
) -> Result<(Vec<Found>, Option<String>), sqlx::Error> {
    let Some(text) = &filter.q else {
        let mut runs = find(org, filter, Search::page(page), models).await?;
        let next = page.next_link(uri, &mut runs);
        return Ok((runs, next));
    };
    let of_this_id = read(org, &[text], None, models).await?;
    if !of_this_id.is_empty() {
        return Ok((of_this_id, None));
    }
    let search = Search {
        rows: SEARCHED,
        ..Search::page(page)
    };
    let mut runs = find(org, filter, search, models).await?;
    let goes_on = i64::try_from(runs.len()).is_ok_and(|found| found >= SEARCHED);
    let last = runs.last().map(|last| page.link_behind(uri, last));
    runs.retain(|run| run.matches);
    let next = page.next_link(uri, &mut runs);
    Ok((runs, next.or(last.filter(|_| goes_on))))
}

/// Returns the workflows to choose from, by name.
async fn find_choices(org: &OrgId, models: &PgPool) -> Result<Vec<Choice>, sqlx::Error> {
    sqlx::query_as!(
        Choice,
        "SELECT id, name FROM (
             SELECT workflow_id AS id, name FROM workflows WHERE org_id = $1
             ORDER BY created_at DESC, workflow_id LIMIT 500) AS newest
         ORDER BY lower(name), id",
        org.as_str(),
    )
    .fetch_all(models)
    .await
}
