//! Webhook endpoints and their deliveries.

mod deliveries;
mod filtered;
mod get;
mod list;
mod row;

use axum::Router;
use axum::routing::get;

pub(crate) use self::deliveries::{Sought, find_deliveries};
pub(crate) use self::filtered::{LOOKED_THROUGH, find_deliveries_in};
pub(crate) use self::get::{find_webhook, no_webhook};
pub(crate) use self::list::find_webhooks;
use self::row::Webhook;
use crate::state::State;

pub(crate) fn router() -> Router<State> {
    Router::new()
        .route("/api/v1/webhooks", get(list::list_webhooks))
        .route("/api/v1/webhooks/{id}", get(get::get_webhook))
        .route(
            "/api/v1/webhooks/{id}/deliveries",
            get(deliveries::list_deliveries),
        )
}
