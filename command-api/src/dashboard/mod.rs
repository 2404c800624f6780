//! Commands of an organization's staff on its pages: signing in and out, people, keys, runs by
//! hand, calls for help. The pages themselves are read from `query-api`.

mod invites;
mod keys;
mod operations;
mod origin;
mod people;
mod runs;
mod session;
mod sos;

use axum::Router;
use axum::routing::{delete, post};

use crate::App;

pub(crate) use operations::Operations;

pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/dashboard/sign-in", post(session::sign_in))
        .route("/dashboard/sign-out", post(session::sign_out))
        .route("/dashboard/keys", post(keys::create_key))
        .route("/dashboard/keys/{id}", delete(keys::revoke_key))
        .route("/dashboard/people", post(people::invite_person))
        .route("/dashboard/people/{id}", delete(people::remove_person))
        .route(
            "/dashboard/people/invites/{id}",
            delete(people::withdraw_invite),
        )
        .route("/dashboard/invite/look", post(invites::look_at_invite))
        .route("/dashboard/invite/accept", post(invites::accept_invite))
        .route(
            "/dashboard/system/operations",
            post(operations::ask_for_operation),
        )
        .route(
            "/dashboard/system/operations/{id}",
            delete(operations::cancel_operation),
        )
        .route(
            "/dashboard/sos/{id}/acknowledge",
            post(sos::acknowledge_sos),
        )
        .route("/dashboard/sos/{id}/resolve", post(sos::resolve_sos))
        .route("/dashboard/workflows/{id}/run", post(runs::run_workflow))
}
