//! Request bodies: bounded, JSON, with errors that name the place.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use serde::de::DeserializeOwned;

use crate::memory::{Full, Held};
use crate::serve::TooSlow;
use crate::{Client, HttpError};

/// The largest body of one object.
pub const MAX_JSON_BYTES: usize = 1024 * 1024;

/// How much of a body that is too large is read and discarded, so that a client which writes
/// everything before it reads still sees the response.
const DRAIN_BYTES: usize = 8 * 1024 * 1024;

/// Whether the content type is JSON (`application/json` or `application/<x>+json`).
pub fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return false;
    };
    let Ok(value) = value.to_str() else {
        return false;
    };
    let essence = value.split(';').next().unwrap_or_default().trim();
    let Some((kind, subtype)) = essence.split_once('/') else {
        return false;
    };
    let subtype = subtype.to_ascii_lowercase();
    kind.eq_ignore_ascii_case("application") && (subtype == "json" || subtype.ends_with("+json"))
}

/// How long a client should wait before it retries while too many bodies are being read.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

/// Reads a whole body of at most `limit` bytes: 413 for a larger one, 400 for one that ends early,
/// 408 for one that arrives too slowly, 503 if the process has no memory left for bodies.
pub async fn read(request: Request, limit: usize) -> Result<Bytes, HttpError> {
    let announced = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced == Some(0) {
        return Ok(Bytes::new());
    }
    let mut room = room(&request);
    let bytes = collect(request.into_body(), limit, room.as_mut()).await?;
    Ok(match room {
        Some(room) => room.keep(bytes),
        None => bytes,
    })
}

/// Memory reservation for a request's body, empty at first; `None` for a router that is called
/// directly, without a connection.
pub fn room(request: &Request) -> Option<Held> {
    request.extensions().get::<Client>().map(Client::room)
}

async fn collect(
    body: Body,
    limit: usize,
    mut room: Option<&mut Held>,
) -> Result<Bytes, HttpError> {
    let mut chunks = body.into_data_stream();
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    let mut length = 0;
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(broken_off)?;
        length += chunk.len();
        if let Some(room) = &mut room
            && length <= limit
        {
            room.grow(chunk.len()).map_err(|Full| no_room())?;
        }
        if length > limit {
            first.clear();
            rest = BytesMut::new();
            if let Some(room) = &mut room {
                room.clear();
            }
            if length > limit + DRAIN_BYTES {
                break;
            }
        } else if first.is_empty() {
            first = chunk;
        } else {
            // Most bodies are one chunk and are never copied.
            if rest.is_empty() {
                rest.extend_from_slice(&first);
            }
            rest.extend_from_slice(&chunk);
        }
    }
    if length > limit {
        return Err(HttpError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body is larger than {limit} bytes"),
        ));
    }
    Ok(if rest.is_empty() {
        first
    } else {
        rest.freeze()
    })
}

fn broken_off(error: axum::Error) -> HttpError {
    if came_too_slowly(&error) {
        HttpError::new(StatusCode::REQUEST_TIMEOUT, TooSlow.to_string())
    } else {
        HttpError::bad_request("the body ended early").with_cause(error)
    }
}

/// Whether this error is the reason why a body ended early.
fn came_too_slowly(error: &axum::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if error.is::<TooSlow>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// 503: the process has no memory left for bodies.
pub fn no_room() -> HttpError {
    HttpError::unavailable(format!("{Full}; try again in a few seconds"))
        .with_header(header::RETRY_AFTER, RETRY_AFTER)
}

/// Parses JSON; an error names the place, such as `steps[2].url: …`.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, HttpError> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| describe(&error))?;
    json.end().map_err(|error| not_json(&error))?;
    Ok(value)
}

fn describe(error: &serde_path_to_error::Error<serde_json::Error>) -> HttpError {
    let place = error.path().to_string();
    // Valid JSON syntax, but not a representable number.
    if place != "." && error.inner().to_string().starts_with("number out of range") {
        return HttpError::bad_request(format!("{place}: must be a finite number"));
    }
    if error.inner().is_syntax() && place != "." && !place.contains('?') {
        // Such as `NaN`, which some languages write for a number.
        return HttpError::bad_request(format!("{place}: is not valid JSON: {}", error.inner()));
    }
    if !error.inner().is_data() {
        return not_json(error.inner());
    }
    if place == "." {
        HttpError::bad_request(error.inner().to_string())
    } else {
        HttpError::bad_request(format!("{place}: {}", error.inner()))
    }
}

fn not_json(error: &serde_json::Error) -> HttpError {
    HttpError::bad_request(format!("the body is not valid JSON: {error}"))
}
