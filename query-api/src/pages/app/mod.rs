//! `GET /app`: a person's own page. It contains no personal data: its script signs in and queries
//! the API as the person.

use axum::extract::State as AppState;
use axum::response::Response;
use minijinja::context;
use service::HttpError;

use super::frame::Page;
use crate::state::State;

pub(super) async fn show_app(AppState(state): AppState<State>) -> Result<Response, HttpError> {
    let page = Page::open("app.html", "Your circle")
        .with_script("dashboard.js")
        .with_script("tiles.js")
        .with_script("map.js")
        .with_script("live.js")
        .with_script("app.js")
        .with_style("app.css");
    let page = state.map.allow_on(page);
    let canvas = state.map.canvas("app-map", "your circle", "above")?;
    page.show(context! { canvas => canvas })
}
