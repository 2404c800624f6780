//! Why a request is rejected before its handler, in the order of the checks.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use service::HttpError;

use crate::Scope;
use crate::limit::Policy;

/// Why a request is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// 401: the request carries no key.
    #[error("an API key is required: Authorization: Bearer wp_…")]
    NoKey,
    /// 401: the key was never made, was revoked or has expired.
    #[error("the API key is not valid")]
    InvalidKey,
    /// 401: the request carries no access token.
    #[error("an access token is required: Authorization: Bearer …")]
    NoToken,
    /// 401: the access token was not issued here, has expired or was revoked.
    #[error("the access token is not valid")]
    InvalidToken,
    /// 429: the key has used up its limit.
    #[error("rate limit of this key exceeded; try again in {retry_after} s")]
    LimitReached {
        /// Seconds until a request is admitted.
        retry_after: u64,
    },
    /// 429: the account has used up what its tier allows in an hour.
    #[error(
        "the account's hourly limit of {} is exceeded; try again in {retry_after} s",
        policy.name()
    )]
    AllowanceUsedUp {
        /// What is used up.
        policy: Policy,
        /// Seconds until as much is admitted.
        retry_after: u64,
    },
    /// 403: the key lacks the scope.
    #[error("this key lacks the scope {0}")]
    ScopeMissing(Scope),
}

impl From<Refusal> for HttpError {
    fn from(refusal: Refusal) -> Self {
        let message = refusal.to_string();
        match refusal {
            Refusal::NoKey | Refusal::InvalidKey | Refusal::NoToken | Refusal::InvalidToken => {
                Self::unauthorized(message)
            }
            Refusal::LimitReached { retry_after }
            | Refusal::AllowanceUsedUp { retry_after, .. } => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, message)
                    .with_header(header::RETRY_AFTER, HeaderValue::from(retry_after))
            }
            Refusal::ScopeMissing(_) => Self::forbidden(message),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        HttpError::from(self).into_response()
    }
}
