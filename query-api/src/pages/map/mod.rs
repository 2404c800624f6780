//! `GET /dashboard/map`: the positions of the members of the organization's circles, and the data
//! for its script: `GET /dashboard/map/now`.

mod calls;
mod circles;
mod tiles;

use axum::Json;
use axum::extract::State as AppState;
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderName, Uri};
use axum::response::Response;
use minijinja::context;
use serde::Serialize;
use service::HttpError;

use self::calls::open_calls;
use self::circles::{Circle, find_circles, find_members, find_places};
pub use self::tiles::MapSettings;
use super::frame::shown;
use super::visit::{Instead, Visit};
use crate::locations::{Trail, trails_of_organization};
use crate::paging::Parameters;
use crate::progress::Projection;
use crate::sos::OpenCall;
use crate::state::State;

/// The projections that the page is read from.
const PROJECTIONS: [Projection; 4] = [
    Projection::Accounts,
    Projection::Circles,
    Projection::Positions,
    Projection::SosCalls,
];

/// Events from before the page starts to follow.
#[derive(Serialize)]
pub(super) struct Now {
    calls: Vec<OpenCall>,
    trails: Vec<Trail>,
}

pub(super) async fn show_map(
    visit: Visit,
    AppState(state): AppState<State>,
    uri: Uri,
) -> Result<Response, Instead> {
    let models = visit.models(&PROJECTIONS).await?;
    let org = visit.org();
    let circles = find_circles(org, models).await?;
    let chosen = chosen(&uri, &circles)?;
    let circle = chosen.map(|circle| circle.id.as_str());
    let members = find_members(org, circle, models).await?;
    let places = find_places(org, circle, models).await?;
    // If the log is unavailable, the page is still shown: the script tries again.
    let calls = open_calls(&state, org, models).await.ok();
    let page = visit.page("map.html", "Map", "map").await?;
    let page = page
        .with_script("tiles.js")
        .with_script("map.js")
        .with_script("live.js")
        .with_script("live_map.js");
    let page = state.map.allow_on(page.with_style("app.css"));
    Ok(page.show(context! {
        circles => shown(&circles),
        chosen => chosen.map(shown),
        members => shown(&members),
        places => shown(&places),
        calls => calls.map(shown),
        canvas => state.map.canvas("map", "your circles", "beside")?,
    })?)
}

pub(super) async fn read_now(
    visit: Visit,
    AppState(state): AppState<State>,
    uri: Uri,
) -> Result<([(HeaderName, &'static str); 1], Json<Now>), Instead> {
    let models = visit.models(&PROJECTIONS).await?;
    let parameters = Parameters::of(&uri)?;
    let (org, circle) = (visit.org(), parameters.one("circle")?);
    let trails = trails_of_organization(org, circle, state.clock.now(), models).await?;
    let calls = open_calls(&state, org, models).await?;
    let now = Now { calls, trails };
    Ok(([(CACHE_CONTROL, "no-store")], Json(now)))
}

/// Returns the only circle to show, if one is requested.
fn chosen<'c>(uri: &Uri, circles: &'c [Circle]) -> Result<Option<&'c Circle>, HttpError> {
    let parameters = Parameters::of(uri)?;
    let Some(id) = parameters.one("circle")?.filter(|id| !id.is_empty()) else {
        return Ok(None);
    };
    let found = circles.iter().find(|circle| circle.id == id);
    let missing = || HttpError::not_found("circle not found");
    found.map(Some).ok_or_else(missing)
}
