//! Circles and the places they watch.

mod list;
mod places;

use axum::Router;
use axum::routing::get;

use crate::state::State;

pub(crate) fn router() -> Router<State> {
    Router::new()
        .route("/circles", get(list::list_circles))
        .route("/circles/{id}/places", get(places::list_places))
}
