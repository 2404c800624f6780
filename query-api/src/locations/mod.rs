//! Current and past positions of persons, for those who may see them.

mod history;
mod latest;
mod trails;

use axum::Router;
use axum::routing::get;
use chrono::{DateTime, Utc};
use schemas::AccountId;
use serde::Serialize;

pub(crate) use self::trails::{Trail, of_organization as trails_of_organization};
use crate::progress::Projection;
use crate::state::State;

pub(crate) fn router() -> Router<State> {
    Router::new()
        .route("/location/latest", get(latest::get_latest))
        .route("/location/history", get(history::get_history))
        .route("/location/trails", get(trails::get_trails))
}

/// The projections that all responses about positions are read from.
const PROJECTIONS: &[Projection] = &[
    Projection::Accounts,
    Projection::Circles,
    Projection::Positions,
];

/// Converts an account id to a bigint. Ids are below 2^53, so they always fit.
pub(crate) fn bigint(account: AccountId) -> i64 {
    i64::try_from(account.0).unwrap_or(i64::MAX)
}

#[derive(Debug, Serialize)]
struct Positions {
    data: Vec<Position>,
}

/// A position of a person.
#[derive(Debug, Serialize)]
struct Position {
    user_id: i64,
    name: String,
    lat: f64,
    lng: f64,
    accuracy: Option<f64>,
    speed: Option<f64>,
    place_name: Option<String>,
    battery: Option<f64>,
    recorded_at: DateTime<Utc>,
}
