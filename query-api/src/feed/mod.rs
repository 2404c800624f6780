//! The organization's events as stored in the log, from the beginning, from a position, or from now
//! on: `GET /api/v1/events`, and for positions `GET /api/v1/locations`.
//!
//! Both are read from the log itself, never from a read model, as lines of JSON that end or as
//! server-sent events that continue. A reader holds a place ([`places`]) while it takes what it
//! requested, and no longer than its key is valid.

mod end;
mod followed;
mod kept;
mod line;
mod places;
mod query;
mod reader;
mod settings;
mod sharing;
mod sse;
mod window;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use access::{Authorized, scope};
use axum::Router;
use axum::extract;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use event_log::{EventLog, Position, ReadError};
use futures::{Stream, StreamExt as _};
use schemas::{Log, OrgId};
use service::outflow::{AtKeyEnd, outflow};
use service::{Clock, HttpError};
use tokio::time::{Instant, sleep, timeout};

use self::kept::KeptSharings;
pub(crate) use self::places::Feeds;
use self::places::ReaderPlace;
pub use self::query::{FeedQuery, Form};
use self::reader::Reader;
pub use self::settings::FeedSettings;
pub(crate) use self::window::{around, event_at, newest_before};
use crate::progress::not_reached;
use crate::reading::positions;
use crate::state::State;

/// How long opening a feed is retried while the log does not answer.
const TIMEOUT: Duration = Duration::from_secs(7);
const AGAIN: Duration = Duration::from_millis(100);

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
    let query = FeedQuery::read(log, &state.log, uri, headers)?;
    let least = positions(headers, &state.log)?;
    let form = query.form;
    let place = state.feeds.enter(&caller)?;
    for position in least {
        reached(state, position).await?;
    }
    let reader = open(state, log, &caller.org, query).await?;
    let (limits, ended) = (state.feeds.stream_limits(), state.access.ended(&caller));
    let (kind, body) = match form {
        Form::Lines => {
            let pieces = holding(place, reader.lines());
            let body = outflow(pieces, limits, ended, AtKeyEnd::BreakOff);
            ("application/x-ndjson", body)
        }
        Form::ServerSent => {
            let pieces = holding(place, sse::stream(reader));
            let body = outflow(pieces, limits, ended, AtKeyEnd::End);
            ("text/event-stream", body)
        }
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, body).into_response())
}

/// Waits until the log has reached a position, for as long as other reads wait for projections.
async fn reached(state: &State, position: Position) -> Result<(), HttpError> {
    let log = position.log();
    let ask = move || async move {
        let end = state.log.end_for_reader(log).await;
        end.map(Position::sequence)
    };
    let reaching = state.feeds.end(log).reached(position.sequence(), ask);
    let waited = timeout(state.position_wait, reaching).await;
    waited.map_err(|_| not_reached())
}

/// Opens a reader, in turn with others, since a busy log may not answer immediately.
async fn open(state: &State, log: Log, org: &OrgId, query: FeedQuery) -> Result<Reader, HttpError> {
    // Before taking a turn, so that a throttled organization does not block others.
    state.log.until_read(org).await;
    let _turn = state.feeds.begin(org).await;
    let begun = Instant::now();
    loop {
        let sharings = state.feeds.sharings();
        let opened = Reader::open(
            &state.log,
            &state.clock,
            sharings,
            log,
            Some(org),
            query.clone(),
        );
        match opened.await {
            Ok(reader) => {
                let reader = reader.in_turns(state.feeds.turns());
                return reader.map_err(HttpError::from);
            }
            Err(error) if error.passes() && begun.elapsed() < TIMEOUT => sleep(AGAIN).await,
            Err(error) => {
                let away = "the event log is not available; try again in a moment";
                let away = HttpError::unavailable(away).with_cause(error);
                return Err(away.with_header(header::RETRY_AFTER, HeaderValue::from(1)));
            }
        }
    }
}

/// Returns the same pieces, holding a place until they end.
fn holding<S: Stream>(place: ReaderPlace, pieces: S) -> impl Stream<Item = S::Item> {
    pieces.inspect(move |_| {
        let _ = &place;
    })
}

/// Returns the events of an organization, or of all, as lines of JSON in the feed's format, for
/// callers with access to the log itself.
///
/// # Errors
/// If the log does not answer. A line that fails ends the stream.
pub async fn lines(
    log: &EventLog,
    clock: &Arc<dyn Clock>,
    feed: Log,
    org: Option<&OrgId>,
    query: FeedQuery,
) -> Result<impl Stream<Item = io::Result<Bytes>> + Send + use<>, ReadError> {
    if let Some(org) = org {
        log.until_read(org).await;
    }
    let sharings = KeptSharings::default();
    let reader = Reader::open(log, clock, &sharings, feed, org, query).await?;
    Ok(reader.lines())
}
