//! Workflows and their runs.

mod get;
mod list;
mod list_runs;
mod outline;

use axum::Router;
use axum::routing::get;

pub(crate) use self::get::{find_workflow, no_workflow};
pub(crate) use self::outline::find_outline;
use crate::state::State;

pub(crate) fn router() -> Router<State> {
    Router::new()
        .route("/api/v1/workflows", get(list::list_workflows))
        .route("/api/v1/workflows/{id}", get(get::get_workflow))
        .route("/api/v1/workflows/{id}/runs", get(list_runs::list_runs))
}
