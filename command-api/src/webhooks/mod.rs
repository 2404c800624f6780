//! Webhook endpoints: creating, changing and deleting them, replays, tests and secret rotation.

mod change;
mod create;
mod delete;
mod directory;
mod replay;
mod request;
mod rotate_secret;
mod selection;
mod test;
mod view;

use axum::Router;
use axum::routing::{patch, post};

pub use create::{NewWebhook, create};
pub use directory::Directory;
pub(crate) use selection::ReplayTurns;
pub use view::Webhook;

use crate::App;

pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/api/v1/webhooks", post(create::create_webhook))
        .route(
            "/api/v1/webhooks/{id}",
            patch(change::change_webhook).delete(delete::delete_webhook),
        )
        .route("/api/v1/webhooks/{id}/replay", post(replay::replay_webhook))
        .route(
            "/api/v1/webhooks/{id}/rotate-secret",
            post(rotate_secret::rotate_webhook_secret),
        )
        .route("/api/v1/webhooks/{id}/test", post(test::test_webhook))
}
