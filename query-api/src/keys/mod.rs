//! API keys.

mod list;

use axum::Router;
use axum::routing::get;

pub(crate) use self::list::{count_keys, find_keys};
use crate::state::State;

pub(crate) fn router() -> Router<State> {
    Router::new().route("/api/v1/keys", get(list::list_keys))
}
