//! Errors of commands, and their HTTP responses.

use axum::http::{HeaderValue, StatusCode, header};
use domain::{FieldError, Invalid};
use event_log::{AppendError, ReadError, VaultError};
use service::HttpError;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError<R> {
    /// The decision was a refusal.
    #[error("{0}")]
    Refused(R),
    /// The `Idempotency-Key` was already used with another request.
    #[error("this Idempotency-Key was already used with another request; use a new key")]
    OtherRequest,
    /// The log could not be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Why the log could not be read or written, or another dependency of a command failed.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// It does not answer; whether something was written is unknown.
    #[error("{0}")]
    Unavailable(String),
    /// The log is slow, and the caller writes more than others; nothing was written.
    #[error("the event log is busy, and others write less")]
    HeldBack,
    /// Concurrent changes kept conflicting.
    #[error("concurrent changes")]
    Busy,
    /// Too many passwords wait to be hashed.
    #[error("too many passwords wait to be hashed")]
    Overloaded,
    /// Too many of these come from one client.
    #[error("too many passwords of one client wait to be hashed")]
    TooManyAtOnce,
    /// Larger than an event may be.
    #[error("too large for the log")]
    TooLarge,
    /// The owner of the data was forgotten meanwhile.
    #[error("the owner was forgotten")]
    Forgotten,
    /// An unexpected error.
    #[error("{0}")]
    Broken(String),
}

impl From<AppendError> for LogError {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Conflict => Self::Busy,
            AppendError::TooLarge => Self::TooLarge,
            AppendError::HeldBack => Self::HeldBack,
            AppendError::Unavailable(reason) => Self::Unavailable(reason),
            AppendError::Malformed(reason) => Self::Broken(reason.to_owned()),
            // Whatever a request may nest is checked where it is read.
            deep @ AppendError::TooDeep => Self::Broken(deep.to_string()),
        }
    }
}

impl From<ReadError> for LogError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Unavailable(reason) => Self::Unavailable(reason),
            broken @ ReadError::Undecodable { .. } => Self::Broken(broken.to_string()),
        }
    }
}

impl From<VaultError> for LogError {
    fn from(error: VaultError) -> Self {
        match error {
            VaultError::Unavailable(reason) => Self::Unavailable(reason),
            VaultError::Forgotten => Self::Forgotten,
            broken @ VaultError::Broken => Self::Broken(broken.to_string()),
        }
    }
}

impl<R> From<AppendError> for CommandError<R> {
    fn from(error: AppendError) -> Self {
        Self::Log(error.into())
    }
}

impl<R> From<ReadError> for CommandError<R> {
    fn from(error: ReadError) -> Self {
        Self::Log(error.into())
    }
}

impl<R> From<VaultError> for CommandError<R> {
    fn from(error: VaultError) -> Self {
        Self::Log(error.into())
    }
}

impl From<LogError> for HttpError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Unavailable(_) => Self::unavailable(
                "the event log does not answer, and nothing was confirmed; try again",
            )
            .with_cause(error),
            LogError::HeldBack => Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "the event log is busy and others write less than you; try again in a second",
            )
            .with_header(header::RETRY_AFTER, HeaderValue::from_static("1")),
            LogError::Busy => {
                Self::conflict("it is being changed by others at the same time; try again")
            }
            LogError::Overloaded => {
                Self::unavailable("too many people are signing in; try again in a moment")
            }
            LogError::TooManyAtOnce => Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too many sign-ins at once from this address; try again in a moment",
            )
            .with_header(header::RETRY_AFTER, HeaderValue::from_static("1")),
            LogError::TooLarge => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large")
            }
            LogError::Forgotten => Self::unauthorized("the account no longer exists"),
            LogError::Broken(_) => Self::internal(error),
        }
    }
}

impl<R: Refusal> From<CommandError<R>> for HttpError {
    fn from(error: CommandError<R>) -> Self {
        match error {
            CommandError::Refused(refusal) => refusal.into_http(),
            CommandError::OtherRequest => Self::conflict(
                "this Idempotency-Key was already used with another request; use a new key",
            ),
            CommandError::Log(error) => error.into(),
        }
    }
}

/// A refusal with an HTTP response.
pub trait Refusal {
    /// Returns the response to the client.
    fn into_http(self) -> HttpError;
}

impl Refusal for std::convert::Infallible {
    fn into_http(self) -> HttpError {
        match self {}
    }
}

impl Refusal for FieldError {
    fn into_http(self) -> HttpError {
        HttpError::bad_request(self.to_string())
    }
}

impl Refusal for Invalid {
    fn into_http(self) -> HttpError {
        HttpError::bad_request(self.to_string())
    }
}

/// There is no such thing, or the caller may not know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} not found")]
pub struct NotFound(pub &'static str);

impl Refusal for NotFound {
    fn into_http(self) -> HttpError {
        HttpError::not_found(self.to_string())
    }
}
