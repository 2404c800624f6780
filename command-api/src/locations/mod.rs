//! Where persons are, and whether they share it.

mod known_fixes;
mod pause;
mod tracks;
mod update;
mod used_keys;

use axum::Router;
use axum::routing::post;

pub(crate) use tracks::Tracks;

use crate::App;

pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/location/update", post(update::update_location))
        .route("/location/pause", post(pause::pause_sharing))
        .route("/location/resume", post(pause::resume_sharing))
}
