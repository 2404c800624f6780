//! Business data: orders, leads, clients and their totals.

mod analytics;
mod clients;
mod grouped;
mod leads;
mod list;
mod orders;
mod series;
mod span;

use axum::Router;
use axum::routing::get;

pub(crate) use self::analytics::{Analytics, analytics_of};
use crate::state::State;

pub(crate) fn router() -> Router<State> {
    Router::new()
        .route("/api/v1/orders", get(orders::list_orders))
        .route("/api/v1/leads", get(leads::list_leads))
        .route("/api/v1/clients", get(clients::list_clients))
        .route("/api/v1/analytics", get(analytics::get_analytics))
}
