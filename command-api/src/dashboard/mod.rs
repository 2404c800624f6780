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

use std::time::Duration;

use axum::Router;
use axum::routing::{delete, post};

use crate::App;

pub(crate) use operations::Operations;

/// How long this process may take to learn what a page has just done.
const LEARNING: Duration = Duration::from_millis(500);

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

/// Waits briefly until this process knows of a change, so that the next page shows it.
async fn until(known: impl Fn() -> bool, what: &'static str) {
    let known = async {
        while !known() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    if tokio::time::timeout(LEARNING, known).await.is_err() {
        tracing::warn!(what, "This process has not seen the change yet");
    }
}
