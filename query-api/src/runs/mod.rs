//! Runs of workflows.

mod get;
mod row;

use axum::Router;
use axum::routing::get;

pub(crate) use self::get::{find_run, no_run};
pub(crate) use self::row::Run;
use crate::state::State;

pub(crate) fn router() -> Router<State> {
    Router::new().route("/api/v1/runs/{run_id}", get(get::get_run))
}
