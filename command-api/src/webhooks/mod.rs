//! Webhook endpoints: making, changing and deleting them.

mod change;
mod create;
mod delete;
mod view;

use axum::Router;
use axum::routing::{patch, post};

pub use change::change;
pub use create::{NewWebhook, create};
pub use delete::delete;
pub use view::Webhook;

use crate::App;

pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/api/v1/webhooks", post(create::create_webhook))
        .route(
            "/api/v1/webhooks/{id}",
            patch(change::change_webhook).delete(delete::delete_webhook),
        )
}
