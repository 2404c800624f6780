//! The outcome of a check, and how a response reports it.

use axum::http::{HeaderName, HeaderValue};
use service::RequestContext;

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Which limit a request is counted against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// A key's own limit over a rolling hour.
    Hourly,
    /// A key's requests to the business data API in a fixed clock minute.
    Minute,
    /// An account's API requests over a rolling hour.
    Requests,
    /// An account's positions over a rolling hour.
    Locations,
}

impl Policy {
    /// The name in response headers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hourly => "hourly",
            Self::Minute => "minute",
            Self::Requests => "requests",
            Self::Locations => "locations",
        }
    }
}

/// Whether a request fits into its limit, and the state of the limit after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The limit that was checked.
    pub policy: Policy,
    /// The quota in its window.
    pub quota: u64,
    /// The window in seconds.
    pub window: u64,
    /// The rest of the quota.
    pub remaining: u64,
    /// Seconds until more is left.
    pub reset: u64,
    /// Of a refusal: seconds after which the same request is admitted, if nothing else is counted
    /// meanwhile.
    pub retry_after: Option<u64>,
}

impl Decision {
    /// Whether the request may proceed.
    pub const fn admitted(&self) -> bool {
        self.retry_after.is_none()
    }

    /// Adds the fields of the IETF draft to the response to this request, whatever it will be.
    pub fn announce(&self, request: &RequestContext) {
        let name = self.policy.name();
        let policy = format!("\"{name}\";q={};w={}", self.quota, self.window);
        let limit = format!("\"{name}\";r={};t={}", self.remaining, self.reset);
        for (header, value) in [(RATE_LIMIT_POLICY, policy), (RATE_LIMIT, limit)] {
            if let Ok(value) = HeaderValue::from_maybe_shared(axum::body::Bytes::from(value)) {
                request.answer_with(header, value);
            }
        }
    }
}
