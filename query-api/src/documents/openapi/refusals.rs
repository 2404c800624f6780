//! Error responses, each in two forms: for requests that count against a limit, which report its
//! state, and for others.

use serde_json::{Map, Value, json};

use super::shape::{headers, refer};

const REFUSALS: &[(u16, &str, &str)] = &[
    (
        400,
        "BadRequest",
        "The request is malformed; the message names the field.",
    ),
    (
        401,
        "Unauthorized",
        "No key or token was sent, or it is wrong, revoked or expired.",
    ),
    (
        403,
        "Forbidden",
        "Not allowed. For a key, the message names the missing scope.",
    ),
    (404, "NotFound", "Not found, or not visible to this caller."),
    (
        408,
        "TooSlow",
        "The body arrived too slowly. Send it faster or in smaller parts. The connection is \
         closed.",
    ),
    (
        409,
        "Conflict",
        "Conflict with the present state, or the Idempotency-Key was already used with another \
         body.",
    ),
    (410, "Gone", "No longer available."),
    (
        412,
        "PreconditionFailed",
        "Somebody else has changed it: it is not in the state that `If-Match` or `If-None-Match` \
         expects. Nothing was written. Read it again, then repeat the change with its new `ETag`.",
    ),
    (413, "TooLarge", "The body is too large."),
    (415, "WrongType", "Unsupported Content-Type."),
    (
        426,
        "UpgradeRequired",
        "The connection cannot become a WebSocket.",
    ),
    (
        429,
        "TooManyRequests",
        "Rate limit exceeded. A retry after `Retry-After` seconds is admitted if nothing else \
         uses the limit meanwhile.",
    ),
    (
        500,
        "Failed",
        "Internal error. The trace id in `traceparent` identifies the log entry.",
    ),
    (
        503,
        "Unavailable",
        "Temporarily unavailable: a dependency does not answer, the position in \
         `Waypost-Min-Position` is not reached yet, or the process is overloaded. Retry later, \
         after `Retry-After` seconds if given.",
    ),
];

/// The name of a refusal among the components.
pub(super) fn name(status: u16, counted: bool) -> String {
    let known = REFUSALS.iter().find(|(known, ..)| *known == status);
    let name = known.map_or("Failed", |(_, name, _)| name);
    let counted = if counted && says_the_limit(status) {
        "Counted"
    } else {
        ""
    };
    format!("{name}{counted}")
}

/// An unauthenticated caller has no limit.
fn says_the_limit(status: u16) -> bool {
    status != 401
}

/// All of them as components.
pub(super) fn responses() -> Value {
    let mut responses = Map::new();
    for (status, _, description) in REFUSALS {
        for counted in [false, true] {
            let own: &[&str] = match status {
                401 => &["WWW-Authenticate"],
                429 => &["Retry-After"],
                _ => &[],
            };
            let mut response = json!({
                "description": description,
                "content": {"application/json": {"schema": refer("schemas", "Error")}},
            });
            let headers = headers(own, counted && says_the_limit(*status));
            if !headers.is_empty() {
                response["headers"] = headers.into();
            }
            responses.insert(name(*status, counted), response);
        }
    }
    responses.into()
}
