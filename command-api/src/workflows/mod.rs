//! Workflows: saving and triggering them.

mod directory;
mod open;
mod put;
mod reading;
mod trigger;

use axum::Router;
use axum::routing::{post, put as put_route};

pub use directory::Directory;
pub(crate) use open::OpenRuns;
pub use put::{NotSaved, SavedWorkflow, put};
pub(crate) use reading::Reading;
pub(crate) use trigger::run_now;

use crate::App;

pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/api/v1/workflows/{id}", put_route(put::put_workflow))
        .route(
            "/api/v1/workflows/{id}/trigger",
            post(trigger::trigger_workflow),
        )
        .route("/api/v1/workflows//trigger", post(trigger::trigger_nothing))
}
