//! Bodies of commands: bounded, and kept as bytes for the fingerprint of a receipt. Each is the
//! last argument of its handler.

use std::ops::Deref;

use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use bytes::Bytes;
use serde_json::Value;
use service::HttpError;
use service::body::{MAX_JSON_BYTES, is_json};

use crate::Refusal;

/// A body of any content type: 413 if it is too large.
pub(crate) struct AnyBody {
    bytes: Bytes,
    pub(crate) is_json: bool,
}

/// A body that must be JSON: 415 for another type, 413 if it is too large.
pub(crate) struct JsonBody<const MAX_BYTES: usize = MAX_JSON_BYTES>(Bytes);

/// A body that anyone may send without a key: limited to what such a request needs.
pub(crate) type SmallBody = JsonBody<{ 16 * 1024 }>;

impl<S: Send + Sync> FromRequest<S> for AnyBody {
    type Rejection = HttpError;

    async fn from_request(request: Request, _: &S) -> Result<Self, HttpError> {
        let is_json = is_json(request.headers());
        let bytes = service::body::read(request, MAX_JSON_BYTES).await?;
        Ok(Self { bytes, is_json })
    }
}

impl<S: Send + Sync, const MAX_BYTES: usize> FromRequest<S> for JsonBody<MAX_BYTES> {
    type Rejection = HttpError;

    async fn from_request(request: Request, _: &S) -> Result<Self, HttpError> {
        if !is_json(request.headers()) {
            return Err(not_json());
        }
        service::body::read(request, MAX_BYTES).await.map(Self)
    }
}

impl Deref for AnyBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl<const MAX_BYTES: usize> Deref for JsonBody<MAX_BYTES> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl<const MAX_BYTES: usize> JsonBody<MAX_BYTES> {
    /// The JSON value, of any shape.
    pub(crate) fn value(&self) -> Result<Value, HttpError> {
        serde_json::from_slice(self)
            .map_err(|error| HttpError::bad_request(format!("the body is not valid JSON: {error}")))
    }

    /// Reads JSON of the shape that `parse` expects.
    pub(crate) fn read<T, R: Refusal>(
        &self,
        parse: impl FnOnce(Value) -> Result<T, R>,
    ) -> Result<T, HttpError> {
        parse(service::body::parse(self)?).map_err(Refusal::into_http)
    }
}

/// 415: a body that is not JSON.
pub(crate) fn not_json() -> HttpError {
    HttpError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "Content-Type: must be application/json",
    )
}
