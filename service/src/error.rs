//! The common format of every error that a client sees.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use axum::Json;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::database;

/// An error response: `{"error": "<message>"}`.
///
/// The message is for the client. Details that the client must not see go into the cause, which the
/// edge logs once, with the trace id that the client got.
#[derive(Clone, Debug)]
pub struct HttpError {
    /// The status of the response.
    pub status: StatusCode,
    /// The message for the client.
    pub message: Cow<'static, str>,
    headers: Option<Box<HeaderMap>>,
    cause: Option<Cause>,
}

/// The cause of an error; carried as an extension of the response from the handler to the edge.
#[derive(Clone, Debug)]
pub(crate) struct Cause(pub(crate) Arc<dyn Error + Send + Sync>);

impl fmt::Display for Cause {
    /// Writes the error and its chain of sources.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

impl HttpError {
    /// Creates an error with this status and message.
    pub fn new(status: StatusCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            message: message.into(),
            headers: None,
            cause: None,
        }
    }

    /// 400: the request cannot be understood or breaks a rule.
    pub fn bad_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// 401: the caller is not authenticated.
    pub fn unauthorized(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, message)
            .with_header(axum::http::header::WWW_AUTHENTICATE, BEARER)
    }

    /// 403: authenticated, but not allowed.
    pub fn forbidden(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
    }

    /// 404: not found.
    pub fn not_found(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// 409: conflicts with the current state.
    pub fn conflict(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    /// 503: a dependency is unavailable; a retry may help, after a second unless stated otherwise.
    pub fn unavailable(message: impl Into<Cow<'static, str>>) -> Self {
        let soon = HeaderValue::from_static("1");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
            .with_header(axum::http::header::RETRY_AFTER, soon)
    }

    /// 500: an unexpected error. Of its source the client sees only the trace id in the response's
    /// `traceparent`, under which it is logged.
    pub fn internal(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, INTERNAL).with_cause(source)
    }

    /// Changes the status, for an API whose list of statuses is shorter.
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// Adds a header to the response.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.get_or_insert_default().insert(name, value);
        self
    }

    /// Keeps the cause of this error for the log.
    #[must_use]
    pub fn with_cause(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.cause = Some(Cause(Arc::from(source.into())));
        self
    }
}

/// The message for a client that must not learn the reason.
pub(crate) const INTERNAL: &str = "internal error; the trace id in traceparent identifies it";
const BEARER: HeaderValue = HeaderValue::from_static("Bearer");

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status.as_u16(), self.message)
    }
}

impl Error for HttpError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_ref().map(|cause| cause.0.as_ref() as _)
    }
}

impl From<sqlx::Error> for HttpError {
    /// 503 if the database is unavailable, 500 for everything else.
    fn from(error: sqlx::Error) -> Self {
        if database::is_unavailable(&error) {
            Self::unavailable("the database is not available").with_cause(error)
        } else {
            Self::internal(error)
        }
    }
}

/// The body of every error.
#[derive(serde::Serialize)]
pub(crate) struct ErrorBody<'a> {
    pub(crate) error: &'a str,
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let body = Json(ErrorBody {
            error: &self.message,
        });
        let mut response = (self.status, body).into_response();
        if let Some(headers) = self.headers {
            response.headers_mut().extend(*headers);
        }
        if let Some(cause) = self.cause {
            response.extensions_mut().insert(cause);
        }
        response
    }
}
