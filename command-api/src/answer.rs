//! Responses of commands: each carries the position at which reads see its effect.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use event_log::Position;
use serde::Serialize;

use crate::Done;

/// The header with the position at which reads see a command's effect.
pub(crate) const POSITION: HeaderName = HeaderName::from_static("waypost-position");

/// A position as a header's value.
fn position_value(position: Position) -> HeaderValue {
    // A position is plain ASCII, so this cannot fail.
    HeaderValue::try_from(position.to_string()).unwrap_or(HeaderValue::from_static(""))
}

/// Returns the header with the position at which reads see a command's effect.
pub(crate) fn position_header(position: Position) -> [(HeaderName, HeaderValue); 1] {
    [(POSITION, position_value(position))]
}

/// An answer with a JSON body.
pub(crate) fn json<T: Serialize>(status: StatusCode, done: Done<T>) -> Response {
    let position = position_header(done.position);
    (status, position, Json(done.answer)).into_response()
}

/// An answer without a body.
pub(crate) fn no_content(done: &Done<()>) -> Response {
    let position = position_header(done.position);
    (StatusCode::NO_CONTENT, position).into_response()
}
