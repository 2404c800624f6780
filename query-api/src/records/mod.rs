//! Business records, one by one.

mod get;
mod percent;

use axum::Router;
use axum::routing::get as reads;

use crate::state::State;

pub(crate) fn router() -> Router<State> {
    Router::new()
        .route("/api/v1/records/companies/{id}", reads(get::company))
        .route("/api/v1/records/deals/{id}", reads(get::deal))
        .route("/api/v1/records/contacts/{id}", reads(get::contact))
        .route("/api/v1/records/orders/{id}", reads(get::order))
        .route("/api/v1/records/leads/{id}", reads(get::lead))
        .route("/api/v1/records/clients/{id}", reads(get::client))
}
