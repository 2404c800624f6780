//! API keys.

mod list;
mod used;

use axum::Router;
use axum::routing::get;

pub(crate) use self::list::{count_keys, find_keys};
pub(crate) use self::used::find_use;
use crate::state::State;

pub(crate) fn router() -> Router<State> {
    Router::new().route("/api/v1/keys", get(list::list_keys))
}
