//! Business records.

mod contacts;

use axum::Router;
use axum::routing::get;

use crate::state::State;

pub(crate) fn router() -> Router<State> {
    Router::new().route("/api/v1/records/contacts/{id}", get(contacts::get_contact))
}
