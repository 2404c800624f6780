//! Open calls for help, for persons and on the map of an organization.

mod open;

use axum::Router;
use axum::routing::get;
use chrono::TimeDelta;
use futures::future::try_join_all;
use schemas::sos::Triggered;
use schemas::{Event, Log};
use serde::Serialize;
use serde_json::Value;
use service::HttpError;

use crate::state::State;

/// Maximum number of calls shown, the newest ones.
pub(crate) const MOST: i64 = 100;
/// Older calls are no longer shown, answered or not.
pub(crate) const LAST: TimeDelta = TimeDelta::days(1);

pub(crate) fn router() -> Router<State> {
    Router::new().route("/sos", get(open::list_open))
}

/// A call as shown by the feed, with the caller's name and whether someone has seen it.
#[derive(Debug, Serialize)]
pub(crate) struct OpenCall {
    #[serde(flatten)]
    shown: Value,
    name: String,
    acknowledged: bool,
}

/// The position of a call in the log, and its state.
pub(crate) struct Row {
    pub(crate) sequence: i64,
    pub(crate) name: String,
    pub(crate) acknowledged: bool,
}

/// Returns the content, sealed in the log, of those calls that `is_for` accepts.
pub(crate) async fn read_calls(
    state: &State,
    rows: Vec<Row>,
    is_for: impl Fn(&Triggered) -> bool,
) -> Result<Vec<OpenCall>, HttpError> {
    let calls = rows.into_iter().map(|row| read_call(state, row, &is_for));
    Ok(try_join_all(calls).await?.into_iter().flatten().collect())
}

async fn read_call(
    state: &State,
    row: Row,
    is_for: impl Fn(&Triggered) -> bool,
) -> Result<Option<OpenCall>, HttpError> {
    let away = |error: &dyn std::fmt::Display| {
        tracing::warn!(%error, "An open call for help cannot be read");
        HttpError::unavailable("the event log is not available; try again in a moment")
    };
    let found = state.log.get(Log::Events, row.sequence.unsigned_abs());
    let Some(recorded) = found.await.map_err(|error| away(&error))? else {
        return Ok(None);
    };
    match &recorded.event {
        Event::SosTriggered(call) if is_for(call) => {}
        _ => return Ok(None),
    }
    let shown = state.log.reveal(&recorded.event).await;
    Ok(Some(OpenCall {
        shown: shown.map_err(|error| away(&error))?,
        name: row.name,
        acknowledged: row.acknowledged,
    }))
}
