//! `GET /dashboard`: the business at a glance, and current activity.

mod charts;
mod figures;

use axum::extract::State as AppState;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use minijinja::{Value, context};
use schemas::Log;
use service::HttpError;

use self::charts::find_chart;
use self::figures::Figures;
use super::frame::{piece, shown};
use super::runs::find_newest;
use super::visit::{Instead, Visit};
use crate::progress::Projection;
use crate::reading::ResourceId;
use crate::state::State;

pub(super) async fn show_home(
    visit: Visit,
    AppState(state): AppState<State>,
) -> Result<Response, Instead> {
    // A position belongs to one log: a visitor from another page waits for the changes made there.
    let models = visit
        .models(&[Projection::Workflows, Projection::Runs])
        .await?;
    let figures = Figures::find(visit.org(), state.clock.now(), models).await?;
    let runs = find_newest(visit.org(), None, models).await?;
    let behind = how_far_behind(&state).await;
    let page = visit.page("home.html", "Home", "home").await?;
    let charts: Vec<Value> = figures
        .charts()
        .iter()
        .map(super::chart::Chart::shown)
        .collect();
    Ok(page.with_style("charts.css").show(context! {
        charts => charts,
        has_business => figures.has_business(),
        tiles => figures.tiles(),
        rows => piece("run_rows.html", context! { runs => shown(&runs) })?,
        runs => runs.len(),
        behind => behind,
    })?)
}

/// Returns the lag of the read models in events, over all logs, or `None` if it is unknown.
async fn how_far_behind(state: &State) -> Option<u64> {
    let mut sum = 0_u64;
    for log in [Log::Events, Log::Locations, Log::Deliveries] {
        sum = sum.saturating_add(state.behind(log).await?);
    }
    Some(sum)
}

/// `GET /dashboard/charts/{name}.csv`
pub(super) async fn get_chart(
    visit: Visit,
    ResourceId(file): ResourceId,
    AppState(state): AppState<State>,
) -> Result<Response, Instead> {
    let no_chart = || HttpError::not_found("there is no such chart");
    let name = file.strip_suffix(".csv").ok_or_else(no_chart)?;
    let models = visit.models(&[Projection::Orders]).await?;
    let now = state.clock.now();
    let chart = find_chart(name, visit.org(), now, models).await?;
    let chart = chart.ok_or_else(no_chart)?;
    let day = now.format("%Y-%m-%d");
    let headers = [
        (CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()),
        (CACHE_CONTROL, "no-store".to_owned()),
        (
            CONTENT_DISPOSITION,
            format!("attachment; filename=\"{name}-{day}.csv\""),
        ),
    ];
    Ok((headers, chart.to_csv()).into_response())
}
