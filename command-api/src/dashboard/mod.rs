//! What a person of an organization's staff does on its pages: signing in and out, keys, runs by
//! hand. The pages themselves are read from `query-api`.

mod keys;
mod origin;
mod runs;
mod session;

use axum::Router;
use axum::routing::{delete, post};

use crate::App;

pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/dashboard/sign-in", post(session::sign_in))
        .route("/dashboard/sign-out", post(session::sign_out))
        .route("/dashboard/keys", post(keys::create_key))
        .route("/dashboard/keys/{id}", delete(keys::revoke_key))
        .route("/dashboard/workflows/{id}/run", post(runs::run_workflow))
}
