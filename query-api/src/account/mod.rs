//! Data that a person may read about their own account.

mod export;
mod gather;
mod json_object;
mod rows;

use axum::Router;
use axum::routing::get;

use crate::state::State;

pub(crate) use export::OwnExports;

pub(crate) fn router() -> Router<State> {
    Router::new().route("/auth/export", get(export::export_account))
}
