//! Answers of commands: each says at which position reads see what it did.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use event_log::Position;
use serde::Serialize;

use crate::Done;

/// Says at which position reads see what a command did.
pub(crate) const POSITION: HeaderName = HeaderName::from_static("waypost-position");

/// A position as a header's value.
pub(crate) fn position_value(position: Position) -> HeaderValue {
    // A position is plain ASCII; nothing else can come of this.
    HeaderValue::try_from(position.to_string()).unwrap_or(HeaderValue::from_static(""))
}

/// The header that says at which position reads see what a command did.
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
