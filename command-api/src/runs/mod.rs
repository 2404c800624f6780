//! Runs: cancelling and retrying them.

mod cancel;
mod change;
mod retry;

use axum::Router;
use axum::routing::post;

pub use cancel::cancel;
pub use change::Unchanged;
pub use retry::retry;

use crate::App;

pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/api/v1/runs/{run_id}/cancel", post(cancel::cancel_run))
        .route("/api/v1/runs/{run_id}/retry", post(retry::retry_run))
}
