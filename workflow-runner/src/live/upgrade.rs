//! The handshake: from a request to a connection whose client is known.

use axum::Router;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use service::{HttpError, RequestContext};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep};

use super::Live;
use super::auth::Viewer;
use super::budget::Budget;
use super::close::CloseReason;
use super::frames::{Reply, Request};
use super::session::{Ended, Session};
use super::wire::{Heard, Wire};

/// The subprotocol that the server selects.
const PROTOCOL: &str = "waypost";
/// The prefix of a token that is offered as a subprotocol.
const BEARER: &str = "bearer.";
/// Frames from clients are small: a token at most.
const MAX_FRAME_BYTES: usize = 16 * 1024;
/// Bytes that an idle connection holds for reading.
const READ_BUFFER_BYTES: usize = 2 * 1024;
/// Frames are gathered up to this size before they are written without a flush.
const WRITE_BUFFER_BYTES: usize = 16 * 1024;

/// The route `/ws`, and the same for an organization's pages.
pub fn router(live: Live) -> Router {
    Router::new()
        .route("/ws", get(open_socket))
        .route("/dashboard/ws", get(open_page_socket))
        .with_state(live)
}

async fn open_socket(
    State(live): State<Live>,
    request: RequestContext,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let admitted = match presented(&headers) {
        Some(token) => Some(live.admit(&token, &request).await),
        None => None,
    };
    open(live, request, admitted, upgrade)
}

/// Refuses sockets of other sites' pages: browsers open them without asking anyone.
async fn open_page_socket(
    State(live): State<Live>,
    request: RequestContext,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let admitted = live.admit_session(&headers, &request).await;
    match admitted {
        Ok(admitted) => open(live, request, Some(admitted), upgrade),
        Err(refused) => refused.into_response(),
    }
}

fn open(
    live: Live,
    request: RequestContext,
    admitted: Option<Result<Viewer, CloseReason>>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        // The edge converts it to the common error format.
        Err(rejection) => return rejection.into_response(),
    };
    let Ok(place) = live.places.clone().try_acquire_owned() else {
        return HttpError::unavailable(
            "this process has the maximum number of sockets; try again later",
        )
        .into_response();
    };
    upgrade
        .protocols([PROTOCOL])
        .max_message_size(MAX_FRAME_BYTES)
        .max_frame_size(MAX_FRAME_BYTES)
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .on_upgrade(move |socket| {
            let sockets = live.sockets.clone();
            sockets.track_future(hold(live, socket, request, admitted, place))
        })
}

/// The token that came with the handshake: among the subprotocols, where browsers can put it, or
/// in the header that all other requests use. One in the URL would end up in logs and is not read.
fn presented(headers: &HeaderMap) -> Option<String> {
    let text = |value: &HeaderValue| value.to_str().ok().map(str::to_owned);
    let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL);
    let offered: Vec<String> = offered.iter().filter_map(text).collect();
    let in_protocols = offered
        .iter()
        .flat_map(|value| value.split(','))
        .find_map(|protocol| protocol.trim().strip_prefix(BEARER));
    let authorization = headers.get(header::AUTHORIZATION).and_then(text);
    in_protocols.map(str::to_owned).or_else(|| {
        let (scheme, token) = authorization.as_deref()?.split_once(' ')?;
        scheme
            .eq_ignore_ascii_case("bearer")
            .then(|| token.trim().to_owned())
    })
}

/// Holds a connection until one side ends it. A rejected client gets the reason here, where
/// browsers can see it: they learn nothing from a refused handshake.
async fn hold(
    live: Live,
    socket: WebSocket,
    request: RequestContext,
    admitted: Option<Result<Viewer, CloseReason>>,
    _place: OwnedSemaphorePermit,
) {
    metrics::gauge!("waypost_ws_connections").increment(1);
    let mut wire = Wire::new(socket);
    let mut budget = Budget::new(Instant::now());
    let admitted = match admitted {
        Some(admitted) => admitted.map_err(Some),
        None => first_token(&live, &mut wire, &mut budget, &request).await,
    };
    let (wire, ended) = match admitted {
        Ok(viewer) => Session::new(live, wire, viewer, budget).run().await,
        Err(ended) => (wire, ended),
    };
    let code = ended.map_or(0, CloseReason::code);
    metrics::counter!("waypost_ws_closed_total", "code" => code.to_string()).increment(1);
    if let Some(reason) = ended {
        wire.close(reason).await;
    }
    metrics::gauge!("waypost_ws_connections").decrement(1);
}

/// Waits for the frame that identifies the client.
async fn first_token(
    live: &Live,
    wire: &mut Wire,
    budget: &mut Budget,
    request: &RequestContext,
) -> Result<Viewer, Ended> {
    let late = sleep(live.settings.auth_timeout);
    tokio::pin!(late);
    loop {
        let heard = tokio::select! {
            heard = wire.next() => heard,
            () = &mut late => return Err(Some(CloseReason::NoToken)),
            () = live.closing.cancelled() => return Err(Some(live.closing_reason())),
        };
        let frame = match heard {
            Heard::Sent => continue,
            Heard::Gone => return Err(None),
            Heard::Unreadable => return Err(Some(CloseReason::BadFrame)),
            Heard::Text(text) => Request::parse(&text).ok(),
            Heard::Binary => None,
        };
        if let Some(Request::Auth { token }) = frame {
            return live.admit(&token, request).await.map_err(Some);
        }
        let error = r#"authenticate first: {"type":"auth","token":"…"}"#;
        wire.send(Reply::Error { id: None, error }.to_text());
        if !budget.take_malformed(Instant::now()) {
            return Err(Some(CloseReason::Abuse));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pairs: &[(&'static str, &'static str)]) -> Option<String> {
        let headers = pairs.iter().map(|(name, value)| {
            (
                axum::http::HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        presented(&headers.collect())
    }

    #[test]
    fn a_token_comes_with_the_handshake_in_two_ways() {
        let offered = "waypost, bearer.wp_abc";
        assert_eq!(
            found(&[("sec-websocket-protocol", offered)]).as_deref(),
            Some("wp_abc")
        );
        assert_eq!(
            found(&[("authorization", "Bearer wp_abc")]).as_deref(),
            Some("wp_abc")
        );
        assert_eq!(found(&[("sec-websocket-protocol", "waypost")]), None);
        assert_eq!(found(&[("authorization", "Basic eDp5")]), None);
        assert_eq!(found(&[]), None);
    }
}
