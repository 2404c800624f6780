//! Bodies of commands: bounded, JSON, kept as bytes for the fingerprint of a receipt.

use axum::extract::Request;
use axum::http::StatusCode;
use bytes::Bytes;
use domain::Invalid;
use serde_json::Value;
use service::HttpError;

/// The largest body of one object.
pub(crate) const MAX_OBJECT_BYTES: usize = service::body::MAX_JSON_BYTES;

/// Reads a body that must be JSON: 415 for another type, 413 for a larger one.
pub(crate) async fn read_json(request: Request, limit: usize) -> Result<Bytes, HttpError> {
    if !service::body::is_json(request.headers()) {
        return Err(not_json());
    }
    service::body::read(request, limit).await
}

/// 415: a body that is not JSON.
pub(crate) fn not_json() -> HttpError {
    HttpError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "the body must have Content-Type: application/json",
    )
}

/// Reads JSON of any shape; whoever needs a shape names the place of what is wrong with it.
pub(crate) fn parse(bytes: &Bytes) -> Result<Value, HttpError> {
    serde_json::from_slice(bytes)
        .map_err(|error| HttpError::bad_request(format!("the body is not valid JSON: {error}")))
}

/// Reads JSON that must have the shape that `parse` knows.
pub(crate) fn read_as<T>(
    bytes: &Bytes,
    parse: impl FnOnce(Value) -> Result<T, Invalid>,
) -> Result<T, HttpError> {
    parse(service::body::parse(bytes)?).map_err(|error| HttpError::bad_request(error.to_string()))
}
