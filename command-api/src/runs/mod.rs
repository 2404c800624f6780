//! Runs: calling them off.

mod cancel;

use axum::Router;
use axum::routing::post;

pub use cancel::{NotCancelled, cancel};

use crate::App;

pub(crate) fn router() -> Router<App> {
    Router::new().route("/api/v1/runs/{run_id}/cancel", post(cancel::cancel_run))
}
