//! `/docs`: the documentation as pages to read, and the API's description as one to try.

mod api;
mod library;
mod markdown;
mod operations;
mod pictures;
mod reading;
mod rows;
mod samples;
mod search;

use axum::Router;
use axum::routing::get;

use crate::state::State;

pub(super) fn router() -> Router<State> {
    Router::new()
        .route("/docs", get(reading::show_index))
        .route("/docs/search", get(reading::show_found))
        .route("/docs/tutorial", get(reading::show_tutorial))
        .route("/docs/tutorial.md", get(reading::get_tutorial))
        .route(library::API, get(api::show_index))
        .route("/docs/reference/api/{part}", get(api::show_part))
        .route(library::SCHEMA, get(reading::get_schema))
        .route("/docs/pictures/{name}", get(pictures::get_picture))
        .route("/docs/{folder}/{name}", get(reading::show_document))
}
