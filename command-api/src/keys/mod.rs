//! API keys: creating and revoking them.

mod create;
mod revoke;

use axum::Router;
use axum::routing::{delete, post};

pub use create::{Giver, NewKey, create};
pub(crate) use create::{full, until_known};
pub(crate) use revoke::given;
pub use revoke::{Given, revoke};

use crate::App;

pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/api/v1/keys", post(create::create_key))
        .route("/api/v1/keys/{id}", delete(revoke::revoke_key))
}
