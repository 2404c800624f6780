//! The organization's events as they stand in the log, told from the beginning, from a position,
//! or from now on: `GET /api/v1/events`, and of positions `GET /api/v1/locations`.
//!
//! Both are read from the log itself, never from a read model, as lines of JSON that end or as
//! server-sent events that go on.

mod asked;
mod line;
mod reader;
mod sight;
mod sse;

use std::io;

use access::{Authorized, scope};
use axum::Router;
use axum::body::Body;
use axum::extract;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use event_log::{EventLog, ReadError};
use futures::Stream;
use schemas::{Log, OrgId};
use service::HttpError;

pub use self::asked::{Asked, Form};
use self::reader::Reader;
use crate::state::State;

pub(crate) fn router() -> Router<State> {
    Router::new()
        .route("/api/v1/events", get(events))
        .route("/api/v1/locations", get(locations))
}

async fn events(
    caller: Authorized<scope::ReadEvents>,
    extract::State(state): extract::State<State>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    answer(Log::Events, caller, &state, &uri, &headers).await
}

async fn locations(
    caller: Authorized<scope::ReadEvents>,
    extract::State(state): extract::State<State>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    answer(Log::Locations, caller, &state, &uri, &headers).await
}

async fn answer(
    log: Log,
    caller: Authorized<scope::ReadEvents>,
    state: &State,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Response, HttpError> {
    let asked = Asked::read(log, &state.log, uri, headers)?;
    let form = asked.form;
    let opened = Reader::open(&state.log, log, Some(&caller.org), asked).await;
    let reader = opened.map_err(|error| {
        HttpError::unavailable("the event log is not available").with_cause(error)
    })?;
    let (kind, body) = match form {
        Form::Lines => ("application/x-ndjson", Body::from_stream(reader.lines())),
        Form::ServerSent => {
            let stream = sse::stream(reader, state.access.clone(), caller.0);
            ("text/event-stream", Body::from_stream(stream))
        }
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, body).into_response())
}

/// The events of an organization, or of all, as lines of JSON: as the feed tells them, for whoever
/// holds the log itself.
///
/// # Errors
/// Where the log does not answer. A line that fails ends the stream.
pub async fn lines(
    log: &EventLog,
    feed: Log,
    org: Option<&OrgId>,
    asked: Asked,
) -> Result<impl Stream<Item = io::Result<Bytes>> + Send + use<>, ReadError> {
    Ok(Reader::open(log, feed, org, asked).await?.lines())
}
